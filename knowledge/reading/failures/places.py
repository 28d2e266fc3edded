"""Causes that follow from the files that a traceback went through.

An error of the same name means something else where rows of the data are gone through, where arguments are
taken, and where a library looks a model up.
"""

from __future__ import annotations

import re

from knowledge.reading.failures.troubled_lines import TroubledLine

_OF_ROWS = {"KeyError", "IndexError", "TypeError", "ValueError", "AttributeError", "FileNotFoundError"}
_THROUGH_ROWS = re.compile(
    r"(?:^|/)(?:datasets/(?:arrow_dataset|iterable_dataset|dataset_dict|builder|formatting)"
    r"|(?<!utils/)data\w*/\w*(?:align|convert|format|load|pars|process|template)\w*\.py"
    r"|\w*data_?sets?(?:_\w*)?\.py )"
    r"| (?:convert|encode|format|map|preprocess|tokenize)_\w*(?:data|example|format|function|fn"
    r"|message|prompt"
    r"|row|sample|sharegpt|alpaca|text)\w*$"
)
_AT_ARGUMENTS = re.compile(
    r"(?:^|/)(?:\w*_args|\w*arguments?|hf_argparser|argparsing|argparse|parser|parse_\w+)\.py "
)
_AT_MODELS = re.compile(r"(?:^|/)auto/(?:configuration|modeling|tokenization)_auto\.py ")
_AT_OPTIMIZERS = re.compile(r"(?:^|/)(?:optim|optimizers?)/\w+\.py __init__$|(?:^|/)lr_scheduler\.py ")
_CALLED_WRONGLY = re.compile(r"unexpected keyword argument|positional arguments?\b")


def cause_by_place(one: TroubledLine) -> str:
    """The cause that an error's traceback tells; empty where it tells none."""
    if one.error not in _OF_ROWS or not one.places or _CALLED_WRONGLY.search(one.message):
        return ""
    if any(_THROUGH_ROWS.search(place) for place in one.places):
        return "bad-data"
    last = one.places[-1]
    if one.error == "KeyError" and _AT_MODELS.search(last):
        return "unsuitable-model"
    if one.error in {"TypeError", "ValueError"} and _AT_OPTIMIZERS.search(last):
        return "bad-arguments"  # a learning rate that is a text, for one
    return "bad-arguments" if one.error == "ValueError" and _AT_ARGUMENTS.search(last) else ""
