"""Code in a ConfigMap: an edit is another revision, and an operator's upgrade is not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.controller.stage import Stage, StageBackend, StageBrokers, StageWorkers, group_of

from rocketfleet.api.other_versions import read_status
from rocketfleet.controller.reconciling.group_state import GroupState
from rocketfleet.controller.reconciling.observe import Observation, Observer
from rocketfleet.controller.resources.code import Code, digest_of, parts_of, seen_revision, unmarked_code, with_code
from rocketfleet.controller.resources.pod import Defaults, build
from rocketfleet.controller.resources.revision import revision_of

ONE, TWO = Code("code1"), Code("code2")
digests = st.sampled_from(["code1", "code2"])


def test_a_hash_goes_by_names_and_content_and_not_by_order() -> None:
    files = {"a.py": "x", "b.py": "y"}
    assert digest_of(files) == digest_of(dict(reversed(files.items())))
    others: list[dict[str, Any]] = [{"a.py": "y", "b.py": "x"}, {"a.py": "x"}, {**files, "c": ""}, {}]
    assert digest_of(files) not in {digest_of(other) for other in others}


@given(st.sampled_from(["abc", "def"]), st.none() | digests)
def test_both_parts_come_back(manifest: str, digest: str | None) -> None:
    assert parts_of(with_code(manifest, digest)) == (manifest, digest)


@given(st.none() | digests, st.none() | digests, st.none() | digests, st.booleans())
def test_a_pod_is_outdated_only_by_evidence(
    of_pod: str | None, wanted: str | None, unmarked: str | None, rolls: bool
) -> None:
    """It has other code than is wanted, for all that is known; and by its manifest whatever its code."""
    goal = with_code("abc", wanted)
    seen = seen_revision(with_code("abc", of_pod), goal, unmarked, rolls=rolls)
    known = of_pod or unmarked
    differs = wanted is not None and known is not None and known != wanted
    assert (seen == goal) is not (rolls and differs)
    assert seen_revision(with_code("old", of_pod), goal, unmarked, rolls=rolls) != goal


def test_the_code_of_pods_that_do_not_say_it_is_what_was_there_at_first() -> None:
    assert unmarked_code(None, "abc.code1", ["abc"]) == "code1"
    assert unmarked_code("code1", "abc.code2", ["abc", "abc.code2"]) == "code1"
    assert unmarked_code("code1", "abc.code2", ["abc.code1"]) == "code2"  # nobody is left who does not say it
    assert unmarked_code("code1", "abc", ["abc.code1"]) == "code1"  # it cannot be read now


def test_pods_have_it_as_an_annotation_beside_the_label_that_older_operators_know() -> None:
    group = group_of(worker={"handler": "orders:handle", "codeConfigMap": "code"})
    metadata = build(group, 0, "abc.code1", Defaults("w"))["metadata"]
    assert metadata["labels"]["rocketfleet.io/revision"] == "abc"
    assert metadata["annotations"]["rocketfleet.io/code"] == "code1"
    assert "rocketfleet.io/code" not in build(group, 0, "abc", Defaults("w"))["metadata"]["annotations"]


class Look:
    """A group with two pods whose code is in a ConfigMap."""

    def __init__(self, *of_pods: str | None, **worker: Any) -> None:
        group = group_of(worker={"handler": "orders:handle", "codeConfigMap": "code", **worker})
        self.stage = Stage(group)
        self.state = GroupState("u1")
        self.base = revision_of(group, Defaults(""))
        self._observer = Observer(StageBackend(self.stage), StageBrokers(self.stage), StageWorkers(self.stage))
        for ordinal, digest in enumerate(of_pods):
            self.stage.add_pod(ordinal, revision=with_code(self.base, digest))

    async def __call__(self, code: Code) -> Observation:
        self.stage.code = code
        seen = await self._observer.look(self.stage.group, self.state, self.stage.now, self.stage.now)
        self.state.observed = seen.observed
        return seen

    async def outdated(self, code: Code) -> list[int]:
        snapshot = (await self(code)).snapshot
        return [pod.ordinal for pod in snapshot.pods if pod.revision != snapshot.revision]


async def test_an_edit_makes_pods_outdated() -> None:
    look = Look("code1", "code2")
    assert await look.outdated(ONE) == [1]
    assert await look.outdated(TWO) == [0]


async def test_with_ignore_no_pod_is_outdated_by_its_code() -> None:
    look = Look("code1", "code2", codeUpdate="Ignore")
    assert await look.outdated(TWO) == []
    assert (await look(TWO)).snapshot.revision == with_code(look.base, "code2")  # and new pods say what they have


async def test_an_upgrade_rolls_nobody_and_an_edit_after_it_rolls_everybody() -> None:
    look = Look(None, None)  # made by an operator from before
    assert await look.outdated(ONE) == []
    assert await look.outdated(TWO) == [0, 1]
    look.state = GroupState("u1")  # another operator takes over: it knows by the status
    status = read_status({"codeRevision": "code1"})
    look.stage.group = look.stage.group.model_copy(update={"status": status})
    assert await look.outdated(TWO) == [0, 1]


@pytest.mark.parametrize("code", [Code(), Code(missing="the ConfigMap code is missing")])
async def test_while_it_cannot_be_read_nobody_is_outdated(code: Code) -> None:
    look = Look("code1", None)
    assert await look.outdated(code) == []
    assert (await look(code)).snapshot.code_missing == code.missing
