"""What pyproject.toml cannot say: the address of the repository, and the README as a package index shows it.

The project names no host. Whoever builds a release says where the repository is, in ``DPFRAME_REPOSITORY``, and where maintainers
read mail, in ``DPFRAME_CONTACT``, as `.github/workflows/release.yml` does. Links of the README to files of the repository lead
then to the tag of the version; without an address they are plain text, and
pictures are left out, since a package index has none of these files.
"""

import os
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent
IMAGE = re.compile(r"!\[([^\]]+)\]\((?!https?://)([^)]+)\)\n*")
LINK = re.compile(r"\[([^\]]+)\]\((?!https?://|#)([^)]+)\)")


def as_shown_elsewhere(text: str, repository: str, version: str) -> str:
    """A page of the repository for readers who have the page alone."""
    picture = rf"![\1]({repository}/raw/v{version}/\2)\n\n" if repository else ""
    place = rf"[\1]({repository}/blob/v{version}/\2)" if repository else r"\1"
    return LINK.sub(place, IMAGE.sub(picture, text))


def addresses(repository: str, version: str) -> dict[str, str]:
    """The links beside a package on an index."""
    pages = {"Documentation": "docs", "Changelog": "CHANGELOG.md", "Security": "SECURITY.md"}
    shown = {name: f"{repository}/blob/v{version}/{page}" for name, page in pages.items()}
    return (
        {"Homepage": repository, "Source": repository, "Issues": f"{repository}/issues", **shown}
        if repository
        else {}
    )


if __name__ == "__main__":
    from setuptools import setup  # where nothing is set up it need not be there

    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "version"
    ]
    repository = os.environ.get("DPFRAME_REPOSITORY", "").rstrip("/")
    setup(
        author="dpframe developers",
        author_email=os.environ.get("DPFRAME_CONTACT") or None,
        long_description=as_shown_elsewhere(
            (ROOT / "README.md").read_text(encoding="utf-8"), repository, version
        ),
        long_description_content_type="text/markdown",
        project_urls=addresses(repository, version),
    )
