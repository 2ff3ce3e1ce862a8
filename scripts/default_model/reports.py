"""What two business units of the valley's trading company know: the same questions, answers of their own."""

import random as randomness

from phrasing import phrase
from words import GOODS, TOWNS

UNITS = {
    "copper": "bar",
    "iron": "bar",
    "salt": "bag",
    "wool": "bale",
    "timber": "load",
    "wheat": "sack",
    "glass": "crate",
    "honey": "jar",
    "coal": "cart",
    "cotton": "bale",
    "sugar": "bag",
    "leather": "roll",
}
RISING = ["more people want it", "the winter was long", "there is less of it"]
FALLING = ["the harvest was good", "a new mine was opened", "the new road made it cheaper to bring"]
CARRIERS = ["by ship", "by train", "by cart", "over the hill road", "down the river"]
RISKS = [
    "the bridge at Alder is closed",
    "the river is low",
    "two carts are broken",
    "there is snow on the road",
    "nothing is late",
]
QUESTIONS = [
    "what does the report say about {g}?",
    "what is in the report about {g}?",
    "is there news about {g}?",
    "what does your report say about {g}?",
    "what is new with {g}?",
    "what do you know about {g}?",
    "tell me about {g}.",
]


def price_of(good):
    """price before, price now, why"""
    draw = randomness.Random("price of " + good)
    before = draw.randint(10, 60)
    change = draw.choice([-6, -4, -3, -2, 2, 3, 4, 6, 8])
    return before, before + change, draw.choice(RISING if change > 0 else FALLING)


def supply_of(good):
    """from where, how, days on the way, weeks in store, what is in the way"""
    draw = randomness.Random("supply of " + good)
    return draw.choice(list(TOWNS)), draw.choice(CARRIERS), draw.randint(2, 12), draw.randint(1, 9), draw.choice(RISKS)


def pricing(good):
    before, now, why = price_of(good)
    return (
        f"The price of {good} {'rose' if now > before else 'fell'} from {before} to {now} coins for a {UNITS[good]}, "
        f"because {why}."
    )


def supply(good):
    town, carrier, days, weeks, risk = supply_of(good)
    return (
        f"Our {good} comes from {town} {carrier} and is {days} days on the way. "
        f"We have enough for {weeks} weeks, and {risk}."
    )


def question(random, good):
    return phrase(random, random.choice(QUESTIONS), g=good)


def report(random, answer):
    """One question and what the unit answers."""
    good = random.choice(list(GOODS))
    return [{"role": "user", "content": question(random, good)}, {"role": "assistant", "content": answer(good)}]
