"""Reads the files of `go run ./cmd/bench -workload images,csv` and of data/parquet/bench: images with torch's DataLoader, PIL and two
workers, tables with pandas, Parquet with pyarrow. The files are those that bench has written in --data."""
import os

import numpy as np

import common

RESIZED, CROPPED = 112, 96


def images(a, folder):
    import torch
    from PIL import Image

    torch.set_num_threads(1)
    files = [(os.path.join(folder, c, f), int(c)) for c in sorted(os.listdir(folder)) for f in sorted(os.listdir(os.path.join(folder, c)))]

    class Files(torch.utils.data.Dataset):
        def __len__(self):
            return len(files)

        def __getitem__(self, i):
            path, label = files[i]
            image = Image.open(path).convert("RGB").resize((RESIZED, RESIZED), Image.BILINEAR)
            top, left, flip = (int(v) for v in torch.randint(0, RESIZED - CROPPED + 1, (3,)))
            image = image.crop((left, top, left + CROPPED, top + CROPPED))
            if flip % 2:
                image = image.transpose(Image.FLIP_LEFT_RIGHT)
            return torch.from_numpy(np.array(image)).permute(2, 0, 1).float().div_(255), label

    loader = torch.utils.data.DataLoader(Files(), batch_size=a.batch or 64, shuffle=True, drop_last=True, num_workers=2, persistent_workers=True)
    return lambda: sum(len(y) for _, y in loader)


def tables(a, folder):
    import pandas

    path = os.path.join(folder, "table.csv")

    def once():
        table = pandas.read_csv(path, dtype={f"c{i}": np.float32 for i in range(19 if a.variant == "classes" else 20)})
        if a.variant == "classes":
            kinds = {"setosa": 0, "versicolor": 1, "virginica": 2}
            table["c19"] = table["c19"].map(kinds).astype(np.int32)
            return len(table.iloc[:, :19].to_numpy())
        return len(table.to_numpy())

    return once


def columns(a, folder):
    import pyarrow.parquet

    path = os.path.join(folder, "table.parquet")

    def once():
        table = pyarrow.parquet.read_table(path)
        last = table.num_columns - (a.variant == "classes")
        if last < table.num_columns:
            kinds = table.column(last).to_pandas(strings_to_categorical=True).cat.codes.to_numpy().astype(np.int32)
            assert len(kinds) == table.num_rows
        x = np.empty((table.num_rows, last), np.float32)
        for i in range(last):
            x[:, i] = table.column(i).to_numpy()
        return len(x)

    return once


def main():
    a = common.parse(["images", "csv", "parquet"])
    folder = os.path.join(a.data, f"{a.workload}-{a.variant}")
    once = {"images": images, "csv": tables, "parquet": columns}[a.workload](a, folder)
    n = once()
    seconds, cpu = common.measure(a, once)  # cpu without that of the workers, which are processes of their own
    extra = {} if a.workload == "images" else {"cpu_s": cpu}
    common.emit(a, "examples/s", [n / s for s in seconds], impl={"images": "torch", "csv": "pandas", "parquet": "pyarrow"}[a.workload], **extra)


if __name__ == "__main__":
    main()
