"""Little stories: someone wants, loses, meets, makes or fears something, and it ends well."""

from phrasing import phrase, phrases
from words import (
    ANIMALS,
    BOYS,
    COLOURS,
    FOODS,
    GIRLS,
    HERO_ANIMALS,
    JOBS,
    MORE_HEROES,
    PLACES,
    SIZES,
    TOYS,
    TRAITS,
    WEATHER,
)

OPENINGS = [
    "[Once upon a time|One day|Long ago|Once], there was a [{size}|{trait}|{size} and {trait}] {kind} [named|called] {name}.",
    "[Once upon a time|A long time ago], a {trait} {kind} named {name} lived [near|not far from|close to] {place}.",
    "{name} was a {trait} {kind} who [lived near|loved to walk to|often went to] {place}.",
    "[There was once|In a small house near {place} lived] a {trait} {kind}. {His} name was {name}.",
    "{name} the {kind} was [very|always|known to be] {trait}.",
]
ENDINGS = [
    "[From that day on|After that], {name} and {friend} were [good|best|true] friends.",
    "{name} [went home|ran home|walked home] with a [smile|happy heart] and [slept well|told everyone about it].",
    "[That night|In the evening], {name} [fell asleep|went to bed] [very happy|with a smile|and dreamed of {place}].",
    "And [so|from then on] {name} was never [sad|alone|afraid] again.",
    "Everyone [was happy|laughed and danced|sang a song together], and {name} was the happiest of all.",
]
MORALS = [
    "{name} [learned|had learned|knew now] that [it is good to share|friends help each other|it is never too late to say sorry].",
    "{name} [learned|knew now] that [even a small {kind} can help|being {trait} is a good thing|a kind word costs nothing].",
    "[It was a good day|What a day it was|It was the best day of the {season}].",
]


def lost(random):
    return [
        "{name} had a {colour} {toy} and [took it everywhere|loved it very much|played with it every day].",
        "[One morning|One day|Then, one {weather} day], the {toy} was gone. {name} [looked|searched] [under the bed|behind the door|in the garden], but it was not there.",
        '{name} [was sad|began to cry|did not know what to do]. "[Where is my {toy}?|Who has seen my {toy}?]" {he} [asked|said].',
        '{friend} the {friend_kind} [heard this|came by|saw that {name} was sad]. "[I will help you|Do not cry|Let us look together]," {friend} said.',
        "They [went to|walked to|looked near] {place}, and there, [under a tree|behind a stone|next to the path], lay the {colour} {toy}!",
        '"[Thank you|Thank you so much], {friend}!" said {name} and [gave {friend} a hug|laughed|jumped for joy].',
    ]


def found(random):
    return [
        "One {weather} [day|morning], {name} went to {place} and [found|saw] a {colour} {toy} [on the ground|under a tree|near the path].",
        '"[Whose {toy} is this?|Who lost this {toy}?]" [thought|said] {name}. It was [very pretty|almost new|a fine {toy}], and {he} [wanted|wished] to keep it.',
        'But then {he} heard someone [cry|call]. It was {friend} the {friend_kind}. "I have lost my {toy}," {friend} [said|cried].',
        "{name} [thought for a moment|looked at the {toy} one more time]. Then {he} [gave it back|gave it to {friend}].",
        '"[You are very kind|Thank you]," said {friend}. "[Come and play with me|We can play with it together]."',
    ]


def meeting(random):
    return [
        "One day {name} [went to|walked to|was playing near] {place}. [There|On the way], {he} met a {friend_kind} [named|called] {friend}.",
        '"[Hello|Good morning], who are you?" asked {name}. "I am {friend}," said the {friend_kind}. "[Do you want to play?|Will you be my friend?]"',
        "At first {name} was [a little shy|not sure|a bit afraid], but {friend} [smiled|was very kind|made a funny face].",
        "They played with a {colour} {toy} [all day long|until the sun went down|until it was time to eat]. Then they ate {food} together.",
        '"[This was fun|I had a good time]," said {friend}. "[See you tomorrow|Let us meet again]!"',
    ]


def making(random):
    return [
        "{name} wanted to make [something good to eat|a surprise for {friend} the {friend_kind}|{food} for all {his} friends].",
        "{He} went to {place} to get [what {he} needed|all the things for it]. [It was a {weather} day|The way was long], but {name} did not [stop|mind|give up].",
        'At home, {he} [worked|cooked and worked] [all morning|for a long time]. "[I hope {friend} will like it|This will be good]," {he} said.',
        '[When it was ready|In the end], {friend} came and [tried it|took a bite]. "[This is the best I ever had|How good it is]!" said {friend}.',
        "They [shared|ate] the {food} and [gave some to everyone|talked until the evening].",
    ]


def fear(random):
    return [
        "One night, {name} heard a [strange|loud|funny] noise. It came from [the roof|the dark wood|behind the house].",
        '"[What is that?|Who is there?]" {name} [asked|said]. {He} was afraid, but {he} was also [curious|{trait}].',
        "{He} took a {toy} and went [outside|to look]. [It was very dark|The moon was bright|It was a cold night].",
        "There {he} saw a {colour} [shadow|thing]. It was only {friend} the {friend_kind}, [who could not sleep|who was looking for {food}|who had lost the way home]!",
        '{name} laughed. "[You scared me|I thought you were a monster]!" {he} said. "[I am sorry|I did not want to scare you]," said {friend}.',
        "They [sat down|went inside] and ate {food} [together|by the fire].",
    ]


def helping(random):
    return [
        "One {weather} day, {name} saw {friend} the {friend_kind} near {place}. {friend} [was sitting on a stone|looked very sad|could not walk].",
        '"What is wrong?" asked {name}. "[I hurt my foot|I am hungry and tired|I cannot find my way home]," said {friend}.',
        "{name} [was {trait} and wanted to help|did not wait]. {He} gave {friend} some {food} and [a {colour} {toy}|a warm blanket|water to drink].",
        "Then {he} [took {friend} home|carried {friend} on {his} back|walked with {friend} all the way].",
        'The next [day|week], {name} fell into [the river|a deep hole]. And who came to help? It was {friend}! "[You helped me, now I help you|I will pull you out]," said {friend}.',
    ]


def contest(random):
    return [
        "{name} and {friend} the {friend_kind} wanted to know who was [faster|stronger|the best at running].",
        '"[Let us run to {place}|Whoever is first at {place} wins]," said {friend}. All the others came to [watch|see it].',
        "[At first|At the start], {friend} was [far ahead|much faster]. {name} was [slow|behind], but {he} did not [stop|give up].",
        "Then {friend} [stopped to eat {food}|sat down to rest|fell over a {colour} {toy}]. {name} [turned back to help|came closer and closer].",
        "[In the end|At last], they [came to|reached] {place} [together|at the same time|side by side]. Everyone [clapped|cheered].",
    ]


def work(random):
    return [
        "{name} wanted to be a {job}. A {job} {job_does}.",
        '"[You are too small|That is hard work|You cannot do that]," said {friend} the {friend_kind}. But {name} [did not listen|tried anyway|wanted to try].',
        "[The first day|At first], everything went wrong. [It was a {weather} day|{He} was tired], and {he} [broke a {colour} {toy}|made many mistakes].",
        "But {name} tried again, and [every day|day by day] it went [better|a little better].",
        '[After a long time|After a year|One day], all the people near {place} said: "{name} is the best {job} [we know|of all]!"',
        '{friend} came and said: "[I was wrong|I am sorry]. [You did it|Well done]!"',
    ]


PLOTS = [lost, found, meeting, making, fear, helping, contest, work]


HEROES = HERO_ANIMALS + ["girl", "boy"] * 5 + MORE_HEROES


def facts_for(random, hero=None, place=None, thing=None):
    """Who and what a story is about; what was asked for is given, the rest is drawn."""
    kind = hero or random.choice(HEROES)
    female = kind in ("girl", "queen", "princess", "witch")
    if not female and kind not in ("boy", "king", "prince"):
        female = random.random() < 0.5
    name = random.choice(GIRLS if female else BOYS)
    friend = random.choice([other for other in GIRLS + BOYS if other != name])
    job = random.choice(list(JOBS))
    he, his = ("she", "her") if female else ("he", "his")
    return dict(
        kind=kind,
        name=name,
        friend=friend,
        he=he,
        his=his,
        He=he.capitalize(),
        His=his.capitalize(),
        friend_kind=random.choice([other for other in HERO_ANIMALS if other != kind]),
        size=random.choice(SIZES),
        trait=random.choice(TRAITS),
        place=place or random.choice(PLACES),
        colour=random.choice(COLOURS),
        toy=thing or random.choice(TOYS),
        food=random.choice(list(FOODS)),
        weather=random.choice(list(WEATHER)),
        job=job,
        job_does=JOBS[job],
        season=random.choice(["spring", "summer", "autumn", "winter"]),
    )


def story(random, hero=None, place=None, thing=None):
    facts = facts_for(random, hero, place, thing)
    sentences = [random.choice(OPENINGS), *random.choice(PLOTS)(random), random.choice(ENDINGS)]
    if random.random() < 0.4:
        sentences.append(random.choice(MORALS))
    return phrases(random, sentences, **facts)


def animal_portrait(random):
    """A few facts about an animal, as an encyclopedia for children has them."""
    animal = random.choice(list(ANIMALS))
    sound, home, food, legs, young, known = ANIMALS[animal]
    return phrase(
        random,
        random.choice(
            [
                "A {a} is an animal. It lives {home} and eats {food}. [It says {sound}|The sound that it makes is {sound}]. A young one is called {young}.",
                "The {a} lives {home}. [People know that|We know that] {known}. It eats {food}, and its young one is {young}.",
                "[Do you know the {a}?|What is a {a}?] It is an animal that lives {home}. It has {legs} legs and eats {food}.",
            ]
        ),
        a=animal,
        sound=sound,
        home=home,
        food=food,
        legs=legs or "no",
        young=young,
        known=known,
    )
