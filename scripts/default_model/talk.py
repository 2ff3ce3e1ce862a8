"""Conversations: questions about the small world, and answers that are true in it."""

from market import market
from phrasing import listing, phrase, written
from stories import HEROES, story
from strange import said_again, unknown
from words import (
    ANIMALS,
    BOYS,
    COLOURS,
    DAYS,
    FOODS,
    GIRLS,
    GOODS,
    JOBS,
    MIXED,
    MORE_TOYS,
    MONTHS,
    MONTH_SEASON,
    NATURAL_COLOURS,
    OPPOSITES,
    PLACES,
    PLURALS,
    SEASONS,
    THINGS,
    TOWNS,
    TOYS,
    WEATHER,
)

NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
).split()
POLITE = "[Please tell me:|I want to know:|Can you tell me:|I have a question:|Hello!]"


def ask(random, *questions):
    question = random.choice(questions)
    is_question = question.endswith("?") and random.random() < 0.3
    return phrase(random, f"{POLITE} {question}" if is_question else question)


def greeting(random):
    name = random.choice(GIRLS + BOYS)
    return random.choice(
        [
            (
                phrase(random, "[Hello|Hi|Good morning|Good evening|Hello there|Hey][!|.|]"),
                phrase(
                    random,
                    "[Hello!|Hi!|Good day!] [How can I help you?|What would you like to know?|Shall I tell you a story?]",
                ),
            ),
            (
                phrase(random, "[Hello|Hi], [I am|my name is] {n}.", n=name),
                phrase(
                    random,
                    "[Hello|Hi], {n}! [It is good to meet you|Nice to meet you]. [How can I help you?|What would you like to know?]",
                    n=name,
                ),
            ),
            (
                phrase(random, "How are you[ today|]?"),
                phrase(
                    random, "I am [well|fine|happy today], thank you. [How are you?|And you?|What can I do for you?]"
                ),
            ),
            (
                phrase(random, "[Who are you?|What is your name?|What are you?]"),
                "I am Troupe, a small language model. I know little stories and the valley of Linden.",
            ),
            (
                phrase(random, "What can you do[ for me|]?"),
                "I can tell little stories and answer simple questions about animals, food, colours, numbers and the valley of Linden.",
            ),
            (
                phrase(random, "[Thank you|Thanks][!|.| very much.]"),
                phrase(random, "[You are welcome!|With pleasure!|I am glad that I could help.]"),
            ),
            (
                phrase(random, "[Goodbye|Bye|See you|Good night][!|.]"),
                phrase(random, "[Goodbye! Have a good day.|See you soon!|Bye! Come back when you like.]"),
            ),
        ]
    )


def told_story(random):
    hero = random.choice(HEROES)
    which = random.randrange(4)
    if which == 0:
        place = random.choice(PLACES)
        return ask(random, f"[can you tell me|tell me|write] a story about a {hero} near {place}."), story(
            random, hero, place
        )
    if which == 1:
        toy = random.choice(TOYS + MORE_TOYS)
        return ask(random, f"[can you tell me|tell me|write] a story about a {hero} and a {toy}."), story(
            random, hero, None, toy
        )
    if which == 2:
        return phrase(random, "[Tell me a story|Write a story|I would like a story|A story, please][.|!]"), story(
            random
        )
    return ask(random, f"[tell me|write] a [little|short] story about a {hero}."), story(random, hero)


def accepted(random):
    """What follows the offer of a story."""
    return phrase(random, "[Yes|Yes, please|Please do|Oh yes|Sure|OK][!|.|]"), story(random)


def animal(random):
    name = random.choice(list(ANIMALS))
    sound, home, food, legs, young, known = ANIMALS[name]
    legs = NUMBERS[legs] if legs else "no"
    many = PLURALS.get(name, name + "s")
    return random.choice(
        [
            (ask(random, f"what does a {name} say?", f"what sound does a {name} make?"), f"A {name} says {sound}."),
            (
                ask(random, f"where does a {name} live?", f"where do I find a {name}?", f"where do {many} live?"),
                f"A {name} lives {home}.",
            ),
            (
                ask(random, f"what does a {name} eat?", f"what is good food for a {name}?", f"what do {many} eat?"),
                f"A {name} eats {food}.",
            ),
            (
                ask(random, f"how many legs does a {name} have?", f"how many legs has a {name}?"),
                f"A {name} has {legs} legs.",
            ),
            (
                ask(random, f"what is a young {name} called?", f"what do we call a young {name}?"),
                f"A young {name} is called {young}.",
            ),
            (
                ask(random, f"tell me about the {name}.", f"what is a {name}?", f"what do you know about the {name}?"),
                f"A {name} is an animal that lives {home}. It eats {food}, and {known}.",
            ),
        ]
    )


def colour(random):
    which = random.randrange(3)
    if which == 0:
        (one, other), mixed = random.choice(list(MIXED.items()))
        one, other = random.sample([one, other], 2)
        return (
            ask(random, f"what do {one} and {other} make?", f"what colour do I get from {one} and {other}?"),
            f"{one} and {other} make {mixed}.",
        )
    thing, its = random.choice(list(NATURAL_COLOURS.items()))
    if which == 1:
        return ask(random, f"what colour is {thing}?", f"which colour has {thing}?"), f"{thing} is {its}."
    other = random.choice(COLOURS)
    right = other == its
    return ask(random, f"is {thing} {other}?"), (
        f"Yes, {thing} is {its}." if right else f"No, {thing} is not {other}. It is {its}."
    )


def thing(random):
    name, use = random.choice(list(THINGS.items()))
    return ask(
        random, f"what is a {name} for?", f"what can I do with a {name}?", f"what do people do with a {name}?"
    ), phrase(random, f"[With a {name}, you can {use}|A {name} is there to {use}].")


def food(random):
    name, (taste, what) = random.choice(list(FOODS.items()))
    verb = "are" if name.endswith("s") else "is"
    return random.choice(
        [
            (
                ask(
                    random,
                    f"how do {name} taste?" if verb == "are" else f"how does {name} taste?",
                    f"what {verb} {name} like?",
                ),
                f"{name} {verb} {taste}.",
            ),
            (
                ask(random, f"what {verb} {name}?"),
                f"{name} {verb} {what}. They are {taste}." if verb == "are" else f"{name} is {what}. It is {taste}.",
            ),
            (ask(random, f"do you like {name}?"), f"I cannot eat, but people say that {name} {verb} {taste}."),
        ]
    )


def arithmetic(random):
    a, b = random.randint(0, 10), random.randint(0, 10)
    if random.random() < 0.5:
        a, b = max(a, b), min(a, b)
        total, sign, word = a - b, "-", "minus"
    else:
        total, sign, word = a + b, "+", "plus"
    if random.random() < 0.5:
        return ask(random, f"what is {a} {sign} {b}?", f"how much is {a} {sign} {b}?"), f"{a} {sign} {b} is {total}."
    return (
        ask(random, f"what is {NUMBERS[a]} {word} {NUMBERS[b]}?", f"how much is {NUMBERS[a]} {word} {NUMBERS[b]}?"),
        f"{NUMBERS[a]} {word} {NUMBERS[b]} is {NUMBERS[total]}.",
    )


def calendar(random):
    which = random.randrange(5)
    day, month = random.randrange(7), random.randrange(12)
    if which == 0:
        return (
            ask(random, f"what day comes after {DAYS[day]}?", f"which day follows {DAYS[day]}?"),
            f"After {DAYS[day]} comes {DAYS[(day + 1) % 7]}.",
        )
    if which == 1:
        return ask(random, f"what day comes before {DAYS[day]}?"), f"Before {DAYS[day]} comes {DAYS[day - 1]}."
    if which == 2:
        return (
            ask(random, f"what month comes after {MONTHS[month]}?"),
            f"After {MONTHS[month]} comes {MONTHS[(month + 1) % 12]}.",
        )
    if which == 3:
        return (
            ask(random, f"what season is it in {MONTHS[month]}?", f"in which season is {MONTHS[month]}?"),
            f"In {MONTHS[month]} it is {MONTH_SEASON[month]}.",
        )
    season, (what, _) = random.choice(list(SEASONS.items()))
    return ask(random, f"what is {season} like?", f"tell me about {season}."), f"In {season}, {what}."


def opposite(random):
    pair = list(random.choice(OPPOSITES))
    random.shuffle(pair)
    return ask(random, f"what is the opposite of {pair[0]}?"), f"The opposite of {pair[0]} is {pair[1]}."


def weather(random):
    kind, (what, wear, do) = random.choice(list(WEATHER.items()))
    return random.choice(
        [
            (
                ask(random, f"what shall I do on a {kind} day?", f"it is {kind} today. What shall I do?"),
                f"When {what}, you can {do}.",
            ),
            (
                ask(random, f"what shall I wear on a {kind} day?", f"it is {kind} today. What shall I wear?"),
                f"When {what}, wear {wear}.",
            ),
        ]
    )


def job(random):
    name, does = random.choice(list(JOBS.items()))
    return (
        ask(random, f"what does a {name} do?", f"what is a {name}?", f"tell me about the work of a {name}."),
        f"A {name} {does}.",
    )


def town(random):
    name, (where, known, eat, mayor, sight, people) = random.choice(list(TOWNS.items()))
    of = " of" if where.removeprefix("in the ") in ("north", "east", "south", "west") else ", in"
    return random.choice(
        [
            (
                ask(random, f"where is {name}?", f"where do I find {name}?"),
                f"{name} is a town {where}{of} the valley of Linden.",
            ),
            (ask(random, f"what is {name} known for?"), f"{name} is known for {known}."),
            (
                ask(random, f"what do people eat in {name}?", f"what is good to eat in {name}?"),
                f"In {name}, people like {eat}.",
            ),
            (ask(random, f"who is the mayor of {name}?"), f"The mayor of {name} is {mayor}."),
            (ask(random, f"what can I see in {name}?"), f"In {name}, you can see {sight}."),
            (ask(random, f"how many people live in {name}?"), f"About {people} people live in {name}."),
            (
                ask(random, f"tell me about {name}.", f"what do you know about {name}?"),
                f"{name} is a town {where}. It is known for {known}, and its people like {eat}. The mayor is {mayor}.",
            ),
        ]
    )


def valley(random):
    return random.choice(
        [
            (
                ask(random, "what towns are in the valley of Linden?", "which towns do you know?"),
                f"The towns of the valley are {listing(list(TOWNS))}.",
            ),
            (
                ask(random, "what is Linden?", "where is Linden?", "tell me about Linden."),
                "Linden is a green valley with eight small towns, a river, hills and the sea.",
            ),
        ]
    )


def goods(random):
    name, (what, use) = random.choice(list(GOODS.items()))
    return random.choice(
        [
            (
                ask(random, f"what is {name}?", f"what do you know about {name}?", f"tell me about {name}."),
                f"{name} is {what}. People use it for {use}.",
            ),
            (
                ask(random, f"what is {name} used for?", f"what do people make with {name}?"),
                f"People use {name} for {use}.",
            ),
            (
                ask(
                    random,
                    f"what does the report say about {name}?",
                    f"what is in the report about {name}?",
                    f"is there news about {name}?",
                    f"what does {name} cost?",
                    f"what is the price of {name}?",
                    f"how much is {name} now?",
                    f"is there enough {name}?",
                    f"where does our {name} come from?",
                ),
                f"I have no report about {name}. I only know that {name} is {what}.",
            ),
        ]
    )


JOKES = [
    ("Why did the hen cross the road?", "To get to the other side!"),
    ("What is black and white and very loud?", "A cow with a drum!"),
    ("Why does the bee hum?", "Because it does not know the words!"),
    ("What did the big clock say to the small clock?", "You are too young to be out so late!"),
    ("What goes up when the rain comes down?", "An umbrella!"),
    ("Why did the snowman call his dog Frost?", "Because Frost bites!"),
]


def joke(random):
    question, answer = random.choice(JOKES)
    return (
        phrase(random, "[Tell me a joke|Do you know a joke|A joke, please|Make me laugh][.|!|?]"),
        f"{question} {answer}",
    )


TOPICS = [
    (greeting, 2),
    (told_story, 5),
    (animal, 4),
    (colour, 2),
    (thing, 1),
    (food, 2),
    (arithmetic, 3),
    (calendar, 2),
    (opposite, 1),
    (weather, 2),
    (job, 1),
    (town, 3),
    (valley, 1),
    (goods, 3),
    (unknown, 4),
    (joke, 1),
    (market, 4),
    (said_again, 4),
]


def as_typed(random, question):
    """People type in a hurry."""
    return question.lower().rstrip(".!?") if random.random() < 0.15 else question


def conversation(random):
    """One to three questions with their answers."""
    turns = random.choices([1, 2, 3], [6, 2, 1])[0]
    messages = []
    for topic in random.choices([topic for topic, _ in TOPICS], [weight for _, weight in TOPICS], k=turns):
        offered = bool(messages) and "tell you a story?" in messages[-1]["content"]
        question, answer = accepted(random) if offered and random.random() < 0.7 else topic(random)
        messages += [
            {"role": "user", "content": as_typed(random, question)},
            {"role": "assistant", "content": written(answer)},
        ]
    return messages
