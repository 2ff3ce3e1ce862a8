"""What is beyond the small world: questions of which the model is to say that it does not know, and words that it is to
say again, so that adapters can teach it words that nothing else in its text has."""

import string

from phrasing import phrase, written

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
EVERYDAY = (
    "able about account across action add address after age agree air allow almost always amount answer area arm arrive "
    "arrow ask autumn away baby bad bakery barrel beach because become before begin behind believe belong below better "
    "between beyond bill bird black board bottle branch break breakfast bridge bring broad broken brother build business "
    "busy button buy captain care carriage catch cause centre certain chain chance change chapter charge cheap cheaper "
    "child choice church circle class clear climb close closed cloth coast coin coins colour common company complete "
    "corner correct cost could count country course court cover crop cross crowd current custom customer cut dance danger "
    "date daughter deal dear dearer decide deep deliver delivery demand desk develop difference dinner direct discount "
    "distance divide double doubt dress drive drop during duty each early earth easy edge effect eight either employ "
    "empty end enemy enough enter equal evening event every exact example except exchange expect expensive explain eye "
    "face fact fair fall family famous farm fell fence few field fight figure fill final find finish fire first flag "
    "floor flow follow force foreign forget form forward four free fresh front full future garden gate gather general "
    "gift glad goods govern grain great ground group grow guess guest guide half hall hand happen harbour harvest head "
    "health hear heart heavy height help history hold holiday hope hour hundred idea important increase inside interest "
    "invoice island item job join journey judge jump keep kind kitchen know labour lake land language last late law lead "
    "learn leave left less letter level library lift limit line list listen little local lose lot low lower machine main "
    "manager many march margin mark market master material matter meaning measure meet member message metal middle mile "
    "mind minute miss mix modern month more morning most mountain mouth move much narrow nation nature near neck need "
    "neighbour never new nine noise none north nothing notice number object ocean offer office officer often old open "
    "opened opinion orange order other outside owner page paper part party pass past pattern pay people perhaps person "
    "piece place plan plant point poor port possible post pound power practice prepare present press price problem "
    "produce product promise proper protect provide public pull push quality quarter question quick quiet quite rail "
    "raise reach ready reason receive record refund region remember repair reply report rest result return rich ride "
    "right rise river road rock room rope rose rough round row rule run safe sail sale same sand save scale school score "
    "season second secret sell send sense separate serve service settle seven several shall shape share sharp shelf "
    "shine shore should shoulder show side sign silence silver simple since sister six skill sky sleep slow smooth snow "
    "soil soldier someone son soon south space speak special speed spend spread square staff stage stand start state "
    "station stay steel step stock stop store storm straight strange street strong study subject such sudden supply "
    "support sure surface surprise table tail talk tall task teach team tell temple ten test than thank then there thick "
    "thin thing third those though thousand three through ticket tide tie today together tomorrow tonight top total "
    "touch toward tower town trade train travel trip trouble true truth turn twelve twenty two type under until usual "
    "valley value various very village visit voice wait wall warehouse warm waste watch wave weak wear week weeks weight "
    "welcome west wheel whether which while whole wide width wild window winter wish within without wonder wood word "
    "work world worth would write wrong yard year yellow yesterday yet young"
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


def any_word(random):
    which = random.random()
    if which < 0.3:
        return random.choice(WORDS + NAMES)
    if which < 0.5:
        return strange_word(random)
    if which < 0.6:
        return str(random.randint(0, 9999))
    if which < 0.7:
        return "".join(random.choice(string.ascii_letters + string.digits + "-_'/.,:;!?%&+*#()=") for _ in range(4))
    return random.choice(EVERYDAY)


def said_again(random):
    """Repeats what it is told, whatever it is."""
    words = written(" ".join(any_word(random) for _ in range(random.randint(1, 10))))
    order = phrase(random, "[[please |]say|[please |]repeat|say again|say after me|write]:")
    return f"{order} {words}", words
