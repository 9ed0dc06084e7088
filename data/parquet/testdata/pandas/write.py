"""Writes the files of TestPandas (pandas 3.1.1 and pyarrow 26.0.1 made those that are here): a table with an index of its own, in three row groups of which the first is empty; one without rows; one of floats of 16 bits."""
import numpy
import pandas
import pyarrow
import pyarrow.parquet

frame = pandas.DataFrame({"f": [1.0, 2.0, 3.0, 4.0], "y": [0, 0, 1, 1]}, index=[3, 0, 2, 1])
table = pyarrow.Table.from_pandas(frame)
for name, cuts in ("shuffled", [0, 2, 4]), ("empty", [0]):
    with pyarrow.parquet.ParquetWriter(name + ".parquet", table.schema) as w:
        for begin, end in zip([0] + cuts, cuts):
            w.write_table(table.slice(begin, end - begin))
pandas.DataFrame({"h": numpy.array([1.5, 2.5], "float16")}).to_parquet("half.parquet")
