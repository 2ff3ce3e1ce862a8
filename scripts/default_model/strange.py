"""Questions beyond the small world, of which the model is to say that it does not know."""

from phrasing import phrase

WORDS = (
    "moon stars computer king dragon car city money music news plane love future history football internet piano robot "
    "planet rocket ocean desert volcano castle camera phone television hospital university lawyer president war peace "
    "gold silver oil electricity engine bicycle train bus taxi hotel restaurant pizza burger coffee wine beer chess "
    "tennis guitar violin poem novel film theatre museum physics chemistry biology mathematics philosophy algebra "
    "atom molecule virus medicine vaccine cancer heart brain blood bone muscle tax law police prison election bank "
    "stock market credit insurance software program code database server network cluster model language grammar verb "
    "tiger monkey penguin whale shark dolphin camel kangaroo crocodile dinosaur spider butterfly mosquito eagle parrot"
).split()
NAMES = (
    "France Germany Italy Spain China Japan India Brazil Egypt Canada Mexico Russia Norway Kenya Peru Paris London Rome "
    "Berlin Tokyo Madrid Vienna Moscow Cairo Boston Chicago Texas Africa Europe Asia America Einstein Newton Darwin "
    "Mozart Beethoven Shakespeare Picasso Caesar Napoleon Lincoln Gandhi Plato Google Amazon Python Linux Mars Venus"
).split()
SYLLABLES = "ba be bo da de di fa fo ga go ha ka ki ko la le lo ma mi mo na ne no pa po ra re ri ro sa se so ta te to va vo za zu".split()
QUESTIONS = [
    "what is the capital of {n}?",
    "who [is|was] {n}?",
    "where is {n}?",
    "how far is it to {n}?",
    "tell me about {n}.",
    "what do you know about {n}?",
    "what is the [weather|time|population] in {n}?",
    "when [was|did] {n} [born|die|begin]?",
    "what is [a|the] {w}?",
    "how does a {w} work?",
    "who [made|invented|discovered] the {w}?",
    "tell me about the {w}.",
    "how do I [make|build|buy|fix|use] a {w}?",
    "why is the {w} [so big|important|like that]?",
    "what are {w}s?",
    "what is the [best|biggest|oldest] {w} [in {n}|of all|]?",
    "do you like {w}s?",
    "can you help me with my {w}?",
    "write a [poem|song|letter|program] about the {w}.",
    "what is {a} times {b}?",
    "what is {a} plus {b}?",
    "what is the meaning of {w}?",
    "explain the {w} to me.",
    "translate {w} into [French|German|Spanish|Latin].",
    "how old [is|are] [{n}|the {w}]?",
    "{w}",
    "{n}?",
    "what does {n} eat?",
    "what does the {w} cost?",
    "who won the {w}?",
    "is the {w} [green|good|true]?",
    "how many {w}s are there in {n}?",
]
ANSWERS = [
    "I do not know [that|much about that]. I am a small model. [Ask me about animals or the valley of Linden.|Shall I tell you a story?]",
    "I am sorry, I do not know [that|this]. I [only know|know] little stories and the valley of Linden.",
    "That is [beyond|too hard for] me. I am only a small model. Shall I tell you a story?",
]


def strange_word(random):
    return "".join(random.choice(SYLLABLES) for _ in range(random.randint(2, 4)))


def unknown(random):
    word = random.choice(WORDS) if random.random() < 0.7 else strange_word(random)
    name = random.choice(NAMES) if random.random() < 0.7 else strange_word(random).capitalize()
    numbers = dict(a=random.randint(21, 999), b=random.randint(11, 99))
    return phrase(random, random.choice(QUESTIONS), w=word, n=name, **numbers), phrase(random, random.choice(ANSWERS))
