"""Files that commands write: whole or not at all, in whatever place they are asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from service.cli.writing import write, writing
from tests.leash import Leashed


def test_what_was_there_stays_until_the_new_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "kept.yaml"
    file.write_text("before")
    with pytest.raises(UnicodeEncodeError), writing(file) as fresh:
        fresh.writelines(("half", "\ud800"))
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]


def test_permissions_of_what_is_replaced_stay_and_links_lead_on(tmp_path: Path) -> None:
    file, link = tmp_path / "there.yaml", tmp_path / "link.yaml"
    file.write_text("before")
    file.chmod(0o640)
    link.symlink_to(file)
    write(link, "after")
    assert (file.read_text(), file.stat().st_mode & 0o777, link.is_symlink()) == ("after", 0o640, True)


def test_what_is_private_can_be_read_by_its_owner_alone_also_where_others_could_read_it_before(
    tmp_path: Path,
) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text("before")
    file.chmod(0o644)
    with writing(file, private=True) as fresh:
        fresh.write("after")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("after", 0o600)


def test_what_is_no_file_is_written_to_and_stays_what_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with Leashed(["cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        write(pipe, "told")
        assert reader.communicate()[0] == "told"
    assert pipe.is_fifo()
    write(Path("/dev/null"), "lost")
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("place", ["no/such/folder.txt", "folder", "file/below.txt"])
def test_where_nothing_can_be_written_the_command_ends_with_why(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(typer.Exit) as ended:
        write(tmp_path / place, "text", status=2)
    assert ended.value.exit_code == 2
    assert f"{tmp_path / place} cannot be written: " in capsys.readouterr().err


def test_a_full_disk_costs_nobody_the_configuration_of_before(tmp_path: Path) -> None:
    file = tmp_path / "tiergate.yaml"
    file.write_text("mine\n")
    # A file may have 4 KiB here, which is less than the commented configuration.
    limited = f"ulimit -f 4; exec {sys.executable} -m service.cli init --force"
    done = subprocess.run(["bash", "-c", limited], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "tiergate.yaml cannot be written: File too large\n")
    assert file.read_text() == "mine\n"
    assert list(tmp_path.iterdir()) == [file]
