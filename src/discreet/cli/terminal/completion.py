"""The command `completion`: print a script that completes commands, options and choices in bash,
zsh or fish.

The script contains all of these words, so that pressing Tab does not start Python. It completes
arguments as names of files.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Annotated, Any

import typer


class Shell(StrEnum):
    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def register(app: typer.Typer) -> None:
    app.command()(completion)


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="Your shell.")],
    context: typer.Context,
) -> None:
    """Print a completion script. Run `source <(discreet completion bash)`, or write it to a file
    that your shell reads.
    """
    print(_SCRIPTS[shell](list(_words(context.find_root().command))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words that may follow some verbs: more verbs, options, and the choices of an option."""

    verbs: tuple[str, ...]  # (), ("ask",), ("release", "start")
    follow: Mapping[str, str]  # the help of each verb that may follow
    options: Mapping[str, str]  # the help of each option
    choices: Mapping[str, tuple[str, ...]]  # the choices of an option that has some


def _words(command: Any, verbs: tuple[str, ...] = ()) -> Iterator[Words]:
    children = getattr(command, "commands", {})
    options: dict[str, str] = {}
    choices: dict[str, tuple[str, ...]] = {}
    for parameter in command.params:
        for name in (*parameter.opts, *parameter.secondary_opts):
            if name.startswith("--"):
                options[name] = _short(getattr(parameter, "help", None))
                if isinstance(parameter.default, Enum):
                    choices[name] = tuple(str(each.value) for each in type(parameter.default))
    options["--help"] = "Show what there is, and exit."
    follow = {name: _short(child.help) for name, child in children.items()}
    yield Words(verbs=verbs, follow=follow, options=options, choices=choices)
    for name, child in children.items():
        yield from _words(child, (*verbs, name))


def _short(text: str | None) -> str:
    """Return the first sentence of a help text."""
    return (text or "").strip().split("\n")[0].split(". ")[0].rstrip(".")


# --- one script for each shell --------------------------------------------------------------------


def _bash(words: list[Words]) -> str:
    cases = "\n".join(
        f"    {_pattern(each)}) words={shlex.quote(' '.join(_all(each)))};;" for each in words
    )
    chosen = "\n".join(
        f'    {option}) COMPREPLY=($(compgen -W {shlex.quote(" ".join(allowed))} -- "$word")); return;;'
        for option, allowed in _choices(words).items()
    )
    return f"""\
_discreet() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" verbs="" words="" each
  for each in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$verbs $each" in
    {_verbs(words)}) verbs="$verbs $each";;
    esac
  done
  case "$before" in
{chosen}
  esac
  case "$verbs" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  if [[ "$word" != -* ]]; then COMPREPLY+=($(compgen -f -- "$word")); fi
}}
complete -o filenames -F _discreet discreet"""


def _zsh(words: list[Words]) -> str:
    cases = "\n".join(
        f"    {_pattern(each)}) found=({' '.join(_describe(each))});;" for each in words
    )  # zsh splits name:help at the colon
    chosen = "\n".join(
        f"    {option}) compadd -- {' '.join(map(shlex.quote, allowed))}; return;;"
        for option, allowed in _choices(words).items()
    )
    return f"""\
#compdef discreet
_discreet() {{
  local verbs="" each
  local -a found
  for each in "${{(@)words[2,CURRENT-1]}}"; do
    case "$verbs $each" in
    {_verbs(words)}) verbs="$verbs $each";;
    esac
  done
  case "${{words[CURRENT-1]}}" in
{chosen}
  esac
  case "$verbs" in
{cases}
  esac
  _describe discreet found
  [[ "${{words[CURRENT]}}" == -* ]] || _files
}}
compdef _discreet discreet"""


def _fish(words: list[Words]) -> str:
    lines = []
    for each in words:
        here = " and ".join([f"__fish_seen_subcommand_from {verb}" for verb in each.verbs])
        deeper = f"not __fish_seen_subcommand_from {' '.join(each.follow)}" if each.follow else ""
        when = " and ".join(part for part in (here, deeper) if part).replace(" and ", "; and ")
        condition = f" -n {shlex.quote(when)}" if when else ""
        for verb, text in each.follow.items():
            lines.append(f"complete -c discreet{condition} -a {verb} -d {shlex.quote(text)}")
        for option, text in each.options.items():
            allowed = each.choices.get(option)
            listed = f" -x -a {shlex.quote(' '.join(allowed))}" if allowed else ""
            lines.append(
                f"complete -c discreet{condition} -l {option[2:]} -d {shlex.quote(text)}{listed}"
            )
    return "\n".join(lines)


_SCRIPTS = {Shell.bash: _bash, Shell.zsh: _zsh, Shell.fish: _fish}


def _pattern(words: Words) -> str:
    return shlex.quote("".join(f" {verb}" for verb in words.verbs))


def _verbs(words: list[Words]) -> str:
    return "|".join(_pattern(each) for each in words if each.verbs)


def _all(words: Words) -> list[str]:
    return [*words.follow, *words.options]


def _describe(words: Words) -> list[str]:
    both = {**words.follow, **words.options}
    return [shlex.quote(f"{name}:{text}" if text else name) for name, text in both.items()]


def _choices(words: list[Words]) -> dict[str, tuple[str, ...]]:
    """Return the choices of each option. If they differ between verbs, return those of all
    verbs.
    """
    choices: dict[str, dict[str, None]] = {}
    for each in words:
        for option, allowed in each.choices.items():
            choices.setdefault(option, {}).update(dict.fromkeys(allowed))
    return {option: tuple(allowed) for option, allowed in choices.items()}
