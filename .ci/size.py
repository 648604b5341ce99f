"""Print the lines of every file and folder; mark files above the size to aim for."""

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ["stagedad", "pyx", "cuda", "tests", "bench"]
AIM = {".py": 350, ".pyx": 500, ".pxd": 150, ".cu": 250, ".cuh": 250}


def main() -> None:
    """Print one line a file, then one a folder."""
    folders: Counter[str] = Counter()
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*")):
        if path.suffix not in AIM or path.name.startswith("_gen_"):
            continue
        lines = len(path.read_text().splitlines())
        over = f"  over {AIM[path.suffix]}" if lines > AIM[path.suffix] else ""
        print(f"{lines:6}  {path.relative_to(ROOT)}{over}")
        folders[path.relative_to(ROOT).parent.as_posix()] += lines
    print()
    for folder, lines in sorted(folders.items()):
        print(f"{lines:6}  {folder}/")
    print(f"{sum(folders.values()):6}  in all")


if __name__ == "__main__":
    main()
