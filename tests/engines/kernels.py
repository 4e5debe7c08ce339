"""Every call of numpy, pandas, Arrow and Python that reads cells or their values, and why no cell makes it raise.

`calls` finds them in the source; `test_kernels_that_read.py` fails where one has no entry, or an entry has no call.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "dpframe"
# Where a cell becomes a value: every call of a library, and every method that converts.
CELLS = [
    *sorted((ROOT / "engines" / "functions").glob("*.py")),
    ROOT / "engines" / "expressions.py",
    *(ROOT / "_cells" / f"{name}.py" for name in ("codec", "columns", "texts")),
    ROOT / "_expr" / "_patterns.py",
    *sorted((ROOT / "_expr" / "catalogue").glob("*.py")),
]
# Elsewhere in the engines: the calls of libraries that convert.
ENGINES = sorted(set((ROOT / "engines").rglob("*.py")) - set(CELLS))
LIBRARIES = {"np", "pd", "_pandas", "pa", "pc", "re", "pl", "pq", "duckdb"}
CONVERTING = {
    *(
        "astype",
        "cast",
        "combine_chunks",
        "decode",
        "dictionary_encode",
        "encode",
        "fill_null",
        "fromisoformat",
    ),
    *(
        "isoformat",
        "normalize",
        "strftime",
        "strptime",
        "sub",
        "take",
        "to_numpy",
        "to_period",
        "to_pylist",
    ),
    *(
        "tz_convert",
        "tz_localize",
        "unique",
        "search",
        "findall",
        "fullmatch",
        "match",
        "split",
        "rsplit",
    ),
    *("partition", "rpartition", "count", "view", "tolist", "utcoffset"),
}

# Why, and what.
REASONS: dict[str, str] = {
    "writes made-up rows of an example, and no private row": "pq.write_table",
    "makes an array, a type or a scalar of sizes, dtypes and constants; no cell is read": """
        np.empty np.zeros np.ones np.full np.dtype np.iinfo np.errstate np.datetime_data np.min_scalar_type np.ndim
        np.result_type np.timedelta64 np.linspace np.frombuffer np.uint64 pa.float64 pa.int32 pa.int64
        pa.large_binary pa.large_string pa.string pa.binary pa.list_ pa.struct pa.schema pa.timestamp pa.types.is_date32
        pa.types.is_date64 pa.types.is_decimal pa.types.is_integer pa.types.is_boolean pa.types.is_large_string
        pa.types.is_struct pa.types.is_timestamp pd.ArrowDtype pd.StringDtype pd.RangeIndex pa.Schema.from_pandas
        pq.ParquetFile pq.ParquetWriter pq.read_metadata pa.BufferReader pl.scan_parquet duckdb.connect pa.BufferOutputStream
        pa.ipc.new_stream pa.ipc.open_stream pa.RecordBatchReader.from_stream pl.nth re.compile re.escape""",
    "is defined for every number, bool or tick of its dtype: IEEE 754 with np.errstate, 64 bits that wrap": """
        np.abs np.append np.array np.asarray np.ascontiguousarray np.clip np.divmod np.flatnonzero np.float64 np.floor_divide
        np.copyto np.fromiter np.int64 np.isfinite np.isinf np.isnan np.isnat np.maximum np.minimum np.mod np.negative
        np.rint
        np.round np.searchsorted np.sign np.signbit np.subtract np.take np.trunc np.unique np.where .astype .view .tolist
        np.datetime64""",
    "maps null to null and looks values up by their bytes: typed arrays, with nothing to parse": """
        .take .fill_null .dictionary_encode .unique .to_numpy .combine_chunks pa.chunked_array pa.concat_arrays
        pa.table pa.record_batch pa.concat_tables pc.fill_null pc.index_in pc.list_flatten
        pc.list_parent_indices pc.list_value_length pc.struct_field _pandas.factorize _pandas.unique _pandas.isna
        _pandas.concat pd.array
        pd.Series pd.DataFrame pd.Index pd.TimedeltaIndex pd.api.extensions.take pd.arrays.ArrowExtensionArray pl.DataFrame
        pa.Array.from_pandas pa.Table.from_pandas pa.scalar pd.util.hash_pandas_object""",
    "is given texts that were tried for UTF-8, or bytes, or typed arrays": "pa.array .to_pylist pd.util.hash_array",
    "casts to bytes, to ticks, or from a decimal to a double with safe=False": ".cast",
    "goes by surrogateescape, surrogatepass, or within a try": ".decode .encode",
    "was tried on a text with the same pattern, case and replacement before the debit (`check_pattern`), in linear time": """
        pc.count_substring_regex pc.extract_regex pc.match_substring_regex pc.replace_substring_regex .findall .sub .search
        .match re.search""",
    "is a method of Python's texts, whose numbers were checked by their size before the debit": """
        .fullmatch .count .split .rsplit .partition .rpartition""",
    "stands in a try that catches what it raises": """
        .fromisoformat .strptime .isoformat pd.Timestamp pd.Interval""",
    "is given years between 1 and 9999, to which `_local`, `_limit_years` and `_as_datetimes` move all others": """
        .tz_localize .tz_convert .strftime .to_period pd.DatetimeIndex""",
    "reads declared ends, or an argument, before any cell is read": """
        pd.Timedelta pd.period_range pd.tseries.frequencies.to_offset re.findall""",
    "reads back what `text_of` wrote, which has tried it": "pd.Period .normalize",
}
KNOWN = {name: why for why, names in REASONS.items() for name in names.split()}


def calls(path: Path, converting: bool) -> set[str]:
    """Return the calls of libraries in a file, and of methods that convert."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            text = ast.unparse(node.func)
            if text.split(".")[0] in LIBRARIES and "(" not in text:
                found.add(text)
            elif converting and node.func.attr in CONVERTING:
                found.add(f".{node.func.attr}")
    return found


def missing() -> dict[str, list[str]]:
    """Return the calls without an entry, by file."""
    found = {}
    for path in CELLS:
        found[path.name] = sorted(calls(path, True) - KNOWN.keys())
    for path in ENGINES:  # arithmetic of numpy there is of codes, places and whole numbers
        found[path.name] = sorted(
            c for c in calls(path, False) - KNOWN.keys() if not c.startswith(("np.", "re."))
        )
    return {name: those for name, those in found.items() if those}


def unused() -> set[str]:
    """Return the entries without a call."""
    there = set().union(*(calls(p, True) for p in CELLS), *(calls(p, False) for p in ENGINES))
    return KNOWN.keys() - there
