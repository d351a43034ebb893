"""The command `pr`: a pull request held against what it is to be merged into."""

from typing import Annotated

import typer

from dflash_audit.cards import DEFAULT_CARD
from dflash_audit.cli import options
from dflash_audit.cli.terminal import complain, screen, write_out


def command(
    repo: options.RepoOfPullRequest,
    number: options.PullRequestNumber,
    comment: Annotated[
        bool,
        typer.Option("--comment", help="Post the outcome on the pull request, or update what was posted."),
    ] = False,
    engine: options.EnginesThatGate = None,
    quantization: options.Quantization = None,
    tp: options.Ranks = 1,
    gpu: options.Card = DEFAULT_CARD,
    attention_backend: options.AttentionBackend = None,
    target: options.Target = None,
    fail_on: options.FailsOn = None,
    select: options.Select = None,
    ignore: options.Ignored = None,
    baseline: options.Baseline = None,
    strict: options.Strict = None,
    form: options.ReviewFormat = "text",
    as_json: options.Json = False,
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
    controls = options.controls(f"{SCHEME}{repo}", fail_on, select, ignore, baseline, strict)
    gating, conditions = options.asked(engine, [tp], gpu, quantization, attention_backend)
    request = Request(repo, gating, conditions, controls.fail_on, target=target)
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
