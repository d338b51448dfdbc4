"""An sdist, the wheel built from it, installed in an environment outside the repository: every module imports."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("core", "datasets", "science", "earth", "elec", "quantum", "chem")


@cache
def tracked() -> list[str]:
    """Files of the repository's folders that git tracks: what a checkout has."""
    output = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    names = [os.fsdecode(name) for name in output.split(b"\0") if name]
    return [name for name in names if (ROOT / name).is_symlink() or (ROOT / name).exists()]


def sources() -> list[str]:
    return [name for name in tracked() if name.split("/")[0] in FOLDERS and name.endswith(".py")]


def module_name(source: str) -> str:
    parts = Path(source).with_suffix("").parts
    return ".".join(("sciax", *(parts[:-1] if parts[-1] == "__init__" else parts)))


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """sdist and wheel, the wheel built from the sdist, as a user's pip would."""
    out = tmp_path_factory.mktemp("dist")
    source = tmp_path_factory.mktemp("source")
    archive = source / "tree.tar"
    with tarfile.open(archive, "w") as tar:
        for name in tracked():
            tar.add(ROOT / name, arcname=name, recursive=False)
    with tarfile.open(archive) as tar:
        tar.extractall(source / "tree", filter="data")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source / "tree")],
        check=True,
        capture_output=True,
        # A machine whose compiler does not work installs all the same.
        env={**os.environ, "CC": "false", "CXX": "false"},
    )
    return next(out.glob("*.tar.gz")), next(out.glob("*.whl"))


def test_wheel_holds_every_module_and_data_file(archives):
    _, wheel = archives
    held = set(zipfile.ZipFile(wheel).namelist())
    expected = {f"sciax/{name}" for name in sources()}
    expected |= {f"sciax/{name}" for name in tracked() if name.split("/")[0] in FOLDERS and "/data/" in name}
    assert not expected - held
    assert "sciax/py.typed" in held
    assert not [name for name in held if name.split("/")[0] in FOLDERS]


def test_installed_wheel_imports_every_module(archives, tmp_path):
    _, wheel = archives
    home = tmp_path / "env"
    # The dependencies come from this environment's own packages; sciax itself only from the wheel.
    venv.create(home, with_pip=False)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    with zipfile.ZipFile(wheel) as content:
        content.extractall(site)
    modules = [module_name(source) for source in sources()]
    code = (
        "import importlib, sys, site\n"
        f"sys.path.append({sysconfig.get_path('purelib')!r})\n"
        "import sciax\n"
        f"assert sciax.__file__.startswith({str(site)!r}), sciax.__file__\n"
        f"for name in {modules!r}:\n"
        "    module = importlib.import_module(name)\n"
        "    where = module.__file__ or list(module.__path__)[0]\n"
        f"    assert where.startswith({str(site)!r}), (name, where)\n"
        "bare = {name for name in sys.modules} & {'core', 'science', 'earth', 'elec', 'quantum', 'chem'}\n"
        "assert not bare, bare\n"
    )
    subprocess.run(
        [str(home / "bin" / "python"), "-c", code], check=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""}
    )
