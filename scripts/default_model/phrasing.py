"""Sentences from patterns: "[a|one] day {name} went [out|to {place}]" has alternatives and names of facts."""

import re

ALTERNATIVES = re.compile(r"\[([^\[\]]*)\]")
SENTENCE_START = re.compile(r"(?:^|[.?!] |(?<=[.?!,:] )\")\"?[a-z]")
ARTICLE = re.compile(r"\b([Aa]) (?=[aeiouAEIOU])")


def phrase(random, pattern, **facts):
    """Chooses among the alternatives, inner ones first, puts the facts in, and writes it as English is written."""
    while True:
        chosen = ALTERNATIVES.sub(lambda found: random.choice(found.group(1).split("|")), pattern)
        if chosen == pattern:
            break
        pattern = chosen
    return written(pattern.format(**facts))


def written(text):
    """Capitals at the starts of sentences, and "an" before vowels."""
    return SENTENCE_START.sub(
        lambda found: found.group(0)[:-1] + found.group(0)[-1].upper(), ARTICLE.sub(r"\1n ", text)
    )


def phrases(random, patterns, **facts):
    """One sentence of each pattern, after one another."""
    return phrase(random, " ".join(patterns), **facts)


def listing(words):
    """red, green and blue"""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
