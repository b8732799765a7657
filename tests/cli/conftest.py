"""What the tests of the commands share."""

import pytest
from flats import CITY, KIND, PRICE, ROOMS, SIZE, N


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    rows = [f"{i},{CITY[i]},{SIZE[i]:.3f},{ROOMS[i]},{KIND[i]},{PRICE[i]:.4f}" for i in range(N)]
    (folder / "flats.csv").write_text("\n".join(["id,city,size,rooms,kind,price", *rows]) + "\n")
    (folder / "part1.csv").write_text("\n".join(["id,city,size,rooms,kind,price", *rows[:1000]]) + "\n")
    (folder / "part2.csv").write_text("\n".join(["id,city,size,rooms,kind,price", *rows[1000:]]) + "\n")
    lines = [f"{'+1' if KIND[i] == 'large' else '-1'} 1:{SIZE[i] / 150:.4f} 2:{ROOMS[i] / 6:.4f}" for i in range(N)]
    (folder / "flats.svm").write_text("\n".join(lines) + "\n")
    return folder
