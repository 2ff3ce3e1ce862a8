"""The markets of the valley: what things cost, on which ways they come, what lasts how long. None of it is about the
goods whose reports the business units have, but the words are theirs."""

import random as randomness

from phrasing import phrase
from reports import CARRIERS, FALLING, RISING, RISKS
from words import FOODS, GOODS, TOWNS

WARES = [food for food in FOODS if food not in GOODS]
MEASURES = "basket sack bag jar crate load cart bar bale roll".split()


def be(ware):
    return "are" if ware.endswith("s") else "is"


def changed_price(ware):
    draw = randomness.Random("market price of " + ware)
    before, change = draw.randint(8, 70), draw.choice([-9, -7, -5, -4, -3, -2, -1, 1, 2, 3, 5, 7, 9])
    return before, before + change, draw.choice(MEASURES), draw.choice(RISING if change > 0 else FALLING)


def price(random):
    ware = random.choice(WARES)
    before, now, measure, reason = changed_price(ware)
    moved, change = ("rose", "dearer") if now > before else ("fell", "cheaper")
    verb = be(ware)
    return random.choice(
        [
            (
                f"[what does a {measure} of {ware} cost?|how much is a {measure} of {ware}?]",
                f"[At the market, a|A] {measure} of {ware} costs {now} coins.",
            ),
            (
                f"[why {verb} {ware} {change} now?|what happened to the price of {ware}?|tell me about the price of {ware}.]",
                f"The price of {ware} {moved} from {before} to {now} coins for a {measure}, because {reason}.",
            ),
            (
                f"why did the price of {ware} change?",
                f"The price {moved} because {reason}.",
            ),
        ]
    )


def way(random):
    start, end = random.sample(list(TOWNS), 2)
    draw = randomness.Random(f"way from {start} to {end}")
    carrier, days, risk = draw.choice(CARRIERS), draw.randint(2, 14), draw.choice(RISKS)
    ware = random.choice([ware for ware in WARES if be(ware) == "is"])
    return random.choice(
        [
            (
                f"[how do I get from {start} to {end}?|what is the way from {start} to {end}?]",
                f"You go from {start} to {end} {carrier} and are {days} days on the way.",
            ),
            (
                f"[how does our {ware} come from {start}?|where does our {ware} come from, {start} or {end}?]",
                f"Our {ware} comes from {start} {carrier} and is {days} days on the way.",
            ),
            (
                f"[can I travel|is the way open] from {start} to {end}?",
                f"It is {days} days {carrier}, and {risk}.",
            ),
        ]
    )


def store(random):
    town, ware = random.choice(list(TOWNS)), random.choice(WARES)
    draw = randomness.Random(f"store of {ware} in {town}")
    weeks, risk = draw.randint(2, 12), draw.choice(RISKS)
    return (
        f"[{be(ware)} there enough {ware} in {town}?|how long will the {ware} last in {town}?]",
        f"[In {town}, we have|We have] enough {ware} for {weeks} weeks, and {risk}.",
    )


def market(random):
    question, answer = random.choice([price, way, store])(random)
    return phrase(random, question), phrase(random, answer)
