"""The command `pr`: a pull request held against what it is to be merged into."""

from typing import Annotated

import typer

from dflash_audit.cards import DEFAULT_CARD
from dflash_audit.cli.options import audited, gate, hub, output
from dflash_audit.cli.terminal import complain, screen, write_out


def command(
    repo: hub.RepoOfPullRequest,
    number: hub.PullRequestNumber,
    comment: Annotated[
        bool,
        typer.Option("--comment", help="Post the outcome on the pull request, or update what was posted."),
    ] = False,
    engine: audited.EnginesThatGate = None,
    quantization: audited.Quantization = None,
    tp: audited.Sizes = None,
    gpu: audited.Card = DEFAULT_CARD,
    attention_backend: audited.AttentionBackend = None,
    target: audited.Target = None,
    fail_on: gate.FailsOn = None,
    select: gate.Select = None,
    ignore: gate.Ignored = None,
    baseline: gate.Baseline = None,
    strict: gate.Strict = None,
    form: hub.ReviewFormat = "text",
    as_json: output.Json = False,
) -> None:
    """Audit a pull request of the Hub, and say what it makes better or worse; the exit code is its own."""
    from dflash_audit.auditing import Request
    from dflash_audit.formats.pr import json as pr_json
    from dflash_audit.formats.pr import markdown as pr_markdown
    from dflash_audit.formats.pr import text as pr_text
    from dflash_audit.gate.gated import gated
    from dflash_audit.printable import printable
    from dflash_audit.publishing.review import review, with_comment
    from dflash_audit.sources.repo import SCHEME, parse_repo

    meant = parse_repo(repo)
    assert meant is not None
    controls = gate.controls(f"{SCHEME}{repo}", fail_on, select, ignore, baseline, strict)
    sizes = (tp or audited.RankSizes()).sizes
    gating, conditions = audited.asked(engine, sizes, gpu, quantization, attention_backend)
    request = Request(repo, gating, conditions, controls.fail_on, target=target, ranks=sizes)
    done = review(meant, number, request, lambda report: gated(report, controls))
    if comment:
        done = with_comment(done, pr_markdown.render(done))
    if as_json or form == "json":
        write_out(pr_json.render(done))
    elif form == "markdown":
        write_out(pr_markdown.render(done))
    elif done.comparison is not None:
        write_out(pr_text.render(done, screen()))
    if done.posted is not None:
        complain([printable(f"comment {done.posted.action}: {done.posted.url}")])
    error = done.error or (done.after and done.after.error)
    complain([error.message] if error else [])
    raise typer.Exit(done.exit_code)
