"""What help says of the arguments of verbs: each argument is explained once, for all verbs."""

from __future__ import annotations

import inspect
import textwrap

from dpframe._arguments import public_functions

TAB = " " * 4

# The keyword arguments about the price, which each verb that asks takes.
PRICE_HELP = {
    "epsilon": "How much of the budget this question may use, at most. Left out, a share of it.",
    "delta": "With ``epsilon``: ask for a Gaussian of this guarantee, where that is cheaper.",
    "within": (
        "Instead of ``epsilon``: the half width of the 95 % interval. The least price for it is "
        "taken. For quantiles it is a number of ranks."
    ),
    "n": (
        "With ``within`` or ``explain``: how many values there are, as a public number or a "
        "released count."
    ),
    "mechanism": '``"auto"``, ``"laplace"`` or ``"gaussian"``; of `choose` also "exponential".',
    "fresh": "True draws new noise, and pays for it, although the question was asked before.",
    "name": "A name for the answer, which returns it later at any price.",
    "max_rows": "How many rows of one person count in a group, in a session with ``unit=``.",
    "max_groups": "In how many groups one person counts, in a session with ``unit=``.",
}
ARGUMENT_HELP = {
    "aggfunc": "The aggregate of each cell: a name, a list of names, or a dict by column.",
    "ascending": "True puts the least noisy count first.",
    "ax": "Matplotlib axes to draw on. Left out, new ones.",
    "because": "Why your ``sensitivity`` holds. The ledger keeps it.",
    "bins": "The number of bins between the bounds, or their edges. Both are public.",
    "bounds": "Public bounds ``(lower, upper)``. Values outside are clipped. Left out, the declared ones.",
    "by": "The column, or columns, to group by.",
    "candidates": "The values to choose from. They are public.",
    "colnames": "Names for the levels of the columns.",
    "color": "The colour of the bars.",
    "column": "The name of a column, a tracked column, or a list of these.",
    "columns": "The keys along the columns.",
    "ddof": "What is taken off the count in the divisor, 0 or 1.",
    "density": "True divides by the number of rows and by the widths of the bins, which is free.",
    "dropna": "False counts nulls as a group of their own.",
    "exclude": "Kinds of columns to leave out, as in pandas.",
    "figsize": "Width and height of the picture in inches.",
    "fill_value": "Has no effect: all keys come back, so no cell is missing.",
    "include": "Kinds of columns to describe, as in pandas.",
    "index": "The keys along the rows.",
    "k": "How many values to choose.",
    "keys": "The public list of groups that may appear. Left out, the declared ones.",
    "margins": "True adds totals, which are free.",
    "margins_name": "The label of the totals.",
    "method": "How quantiles are found, ``choice`` or ``tree``; of `corr` only ``pearson``.",
    "min_periods": "Has no effect: how many values there are is not public.",
    "model": "A model of `dpframe.learn`.",
    "normalize": "Proportions instead of counts, as in pandas. They are free.",
    "observed": "False. True would tell which groups occur, and is refused.",
    "other": "A second column; or the label of the group of all that is not listed.",
    "outputs": 'One name for each output: ``n=("age", "size")``.',
    "percentiles": "The quantiles of the summary.",
    "public_index": "True if the labels of the rows are public.",
    "q": "The level of the quantile between 0 and 1, or a list of levels.",
    "questions": "The conditions to count, by name.",
    "resolution": "The step of the grid of answers, rounded down to a power of two.",
    "rot": "The angle of the labels.",
    "rownames": "Names for the levels of the rows.",
    "sensitivity": "How much one row moves the utility of a candidate, if you know better.",
    "share": "Which share of the people the limits should hold for.",
    "sort": "True sorts the keys, or the counts. Otherwise they stand as listed.",
    "spec": "Aggregates: a name, a list of names, or a dict by column.",
    "subset": "Columns to count by.",
    "title": "The title of the picture.",
    "utility": "What a candidate is worth: an expression of one row with ``@candidate``.",
    "values": "The column, or columns, that the cells aggregate.",
    "X": "The columns to predict from.",
    "y": "The column to predict.",
}


def explain_parameters(kind: type) -> None:
    """Add to the docstring of each verb that asks what its arguments mean."""
    for function in public_functions(kind):
        doc, parameters = function.__doc__, inspect.signature(function).parameters
        if doc is None or "within" not in parameters or "\nParameters\n---" in doc:
            continue  # without docstrings, under -OO, there is nothing to add to
        texts = PRICE_HELP | ARGUMENT_HELP
        lines = ["Parameters", "----------"]
        for name in list(parameters)[1:]:
            lines += [
                name,
                *textwrap.wrap(texts[name], 76, initial_indent=TAB, subsequent_indent=TAB),
            ]
        section = "\n".join(lines)
        function.__doc__ = f"{inspect.cleandoc(doc)}\n\n{section}\n"
