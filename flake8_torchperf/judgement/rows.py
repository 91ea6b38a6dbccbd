"""The table of causes, which decide if a site is reported; the first row that applies decides.

`table.py` tests some rows on each site. `frequency/`, `review/` and the guards that the interpreter
met give the other causes.
"""

from __future__ import annotations

from flake8_torchperf.judgement.row import COLD, FATE, FREE, FREQUENCY, HOT, LOOP_AT, RESIDENCE, Row
from flake8_torchperf.values.cause import Cause

ROWS = (
    Row(
        Cause.NAMED_HOT,
        FREQUENCY,
        HOT,
        "hot by your settings",
        "A function that your settings name as hot runs in every step.",
    ),
    Row(
        Cause.NAMED_COLD,
        FREQUENCY,
        COLD,
        "cold by your settings",
        "A function that your settings name as cold runs seldom.",
    ),
    Row(
        Cause.CONTRACT,
        FREQUENCY,
        HOT,
        "on the way from {name}",
        "Nothing that a function with a contract calls may wait.",
    ),
    Row(
        Cause.RAN_OFTEN,
        FREQUENCY,
        HOT,
        "ran often",
        "In the recorded run, the line ran and waited more than once.",
    ),
    Row(
        Cause.RAN_ONCE,
        FREQUENCY,
        COLD,
        "profile: ran once",
        "In the recorded run, the line ran or waited once in each process.",
    ),
    Row(
        Cause.NEVER_WAITED,
        FREQUENCY,
        COLD,
        "profile: no waits",
        "In the recorded run, the line never waited.",
    ),
    Row(
        Cause.ELEMENTS,
        FREQUENCY,
        HOT,
        "in {name}",
        "The site is itself a loop over the elements of a tensor or over the parameters "
        "of a model.",
    ),
    Row(
        Cause.LOOP,
        FREQUENCY,
        HOT,
        "in a loop",
        "A loop around the site repeats it.",
    ),
    Row(
        Cause.TRAINING_STEP,
        FREQUENCY,
        HOT,
        "in a training step",
        "A function that calls `backward()` and steps an optimizer, without a loop around "
        "both, is a training step.",
    ),
    Row(
        Cause.COMPILED,
        FREQUENCY,
        HOT,
        "in a compiled function",
        "A function that is compiled is compiled because it runs often.",
    ),
    Row(
        Cause.OUTSIDE_STEPS,
        FREQUENCY,
        COLD,
        "outside the steps",
        "In the function that holds the loop over steps, the code beside that loop runs once.",
    ),
    Row(
        Cause.CALLED,
        FREQUENCY,
        HOT,
        "called by `{name}` at line {line}",
        "A function that runs in every step, or a loop in a function, calls this one.",
    ),
    Row(
        Cause.CALLED_IN_LOOP,
        FREQUENCY,
        HOT,
        f"called in a {LOOP_AT}",
        "A loop at module level calls the function.",
    ),
    Row(
        Cause.FEEDS_STEPS,
        FREQUENCY,
        HOT,
        "for training steps",
        "Each round of a training loop takes a batch of a loader without workers.",
    ),
    Row(
        Cause.SET_UP_CALLS,
        FREQUENCY,
        COLD,
        "called by set-up code",
        "Every call of the function that the package holds is in set-up code.",
    ),
    Row(
        Cause.BEFORE_STEPS,
        FREQUENCY,
        COLD,
        "before the steps",
        "Every call of the function is beside the loop over steps.",
    ),
    Row(
        Cause.SELDOM_CALLS,
        FREQUENCY,
        COLD,
        "called seldom",
        "Every call of the function is in a branch that runs seldom: once in several steps, on an "
        "error, or where an option is switched on.",
    ),
    Row(
        Cause.EVALUATION,
        FREQUENCY,
        COLD,
        "in an evaluation",
        "In a program that trains, a loop that only runs a model without gradients is an "
        "evaluation, which runs once in many steps.",
    ),
    Row(
        Cause.UNREACHED,
        FREQUENCY,
        COLD,
        "no step reaches it",
        "In a program that trains, a function whose known calls all stand outside the steps runs "
        "seldom.",
    ),
    Row(
        Cause.NEVER_MADE,
        FREQUENCY,
        COLD,
        "class never made",
        "In a program that trains, a class that no live code makes is never made: neither its "
        "methods run, nor what only they call, nor a branch on `isinstance` of it.",
    ),
    Row(
        Cause.NEVER_RUN,
        FREQUENCY,
        COLD,
        "nothing runs it",
        "In a program that trains, a function that nothing runs, and what only such functions run, "
        "waits for nobody; loops over elements are told in spite of it, and an editor and "
        "`--diff-base` tell all of it, since new code has no callers yet.",
    ),
    Row(
        Cause.STEP_ROOT,
        FREQUENCY,
        HOT,
        "in {name}",
        "torch or a framework calls the method in every step, as `Module.forward` or "
        "`training_step`.",
    ),
    Row(
        Cause.SET_UP_ROOT,
        FREQUENCY,
        COLD,
        "set-up in {name}",
        "torch or a framework calls the method once or on request, as `__init__` of a "
        "module or `state_dict`.",
    ),
    Row(
        Cause.TEST,
        FREQUENCY,
        COLD,
        "in a test",
        "The function is a test, or a helper in a file of tests.",
    ),
    Row(
        Cause.DATA_WORKER,
        FREQUENCY,
        COLD,
        "in a data loader's worker",
        "The method of a data set runs on the host, in the workers of a data loader.",
    ),
    Row(
        Cause.CONVERSION,
        FREQUENCY,
        COLD,
        "asked for a host value",
        "The method is itself a conversion to the host, as `__bool__`, and no step asks for it.",
    ),
    Row(
        Cause.PICKLING,
        FREQUENCY,
        COLD,
        "beside pickling",
        "The function pickles objects or reads pickled ones, on the host.",
    ),
    Row(
        Cause.REGISTERED,
        FREQUENCY,
        COLD,
        "registered with a tracer",
        "The function is registered with a tracer or as an implementation, and runs on "
        "tensors without data.",
    ),
    Row(
        Cause.RESULT_KEPT,
        FREQUENCY,
        COLD,
        "its result is kept",
        "`functools.cache` runs the function once and keeps its result.",
    ),
    Row(
        Cause.ERROR,
        FREQUENCY,
        COLD,
        "on an error path",
        "A branch that ends by raising, or that handles an exception, runs when something fails.",
    ),
    Row(
        Cause.SOME_STEPS,
        FREQUENCY,
        COLD,
        "once in several steps",
        "A branch on `step % n` runs once in several steps, unless it steps the optimizer.",
    ),
    Row(
        Cause.FIRST_CALL,
        FREQUENCY,
        COLD,
        "on the first call or round",
        "A branch that fills what it tests, or a move of what stays moved, runs on the first call.",
    ),
    Row(
        Cause.MADE_ONCE,
        FREQUENCY,
        COLD,
        "made once and kept",
        "The code below a return of a stored result runs once.",
    ),
    Row(
        Cause.TRACING,
        FREQUENCY,
        COLD,
        "under a compiling guard",
        "A branch on `is_compiling()` or the like is no ordinary eager path.",
    ),
    Row(
        Cause.NO_DEVICE,
        RESIDENCE,
        FREE,
        "where there is no device",
        "The branch is taken only where the tensor lies on the host.",
    ),
    Row(
        Cause.NOTHING_TO_DO,
        FREQUENCY,
        COLD,
        "with nothing to compute",
        "A branch on an empty tensor or list has nothing to compute.",
    ),
    Row(
        Cause.SWITCHED_OFF,
        FREQUENCY,
        COLD,
        "option off by default",
        "A branch on an option runs only where the option is switched on, and no default or "
        "setting does that.",
    ),
    Row(
        Cause.NEVER_LEFT_OUT,
        FREQUENCY,
        COLD,
        "without a usual argument",
        "A branch for a missing argument does not run where every call passes one.",
    ),
    Row(
        Cause.CONVENTION,
        FREQUENCY,
        COLD,
        "convention {name}",
        "A row of the table of conventions tells from a name how often the code runs.",
    ),
    Row(
        Cause.GIVEN_TENSORS,
        FREQUENCY,
        HOT,
        "in a helper",
        "A helper that computes on the tensors that it is given is called from code that "
        "runs often.",
    ),
    Row(
        Cause.MODULE_LEVEL,
        FREQUENCY,
        COLD,
        "at module level",
        "Code at module level runs once, when the module is imported.",
    ),
    Row(
        Cause.NOTHING,
        FREQUENCY,
        COLD,
        "in {name}",
        "Nothing shows how often the function runs.",
    ),
    Row(
        Cause.AT_ONCE,
        FATE,
        FREE,
        "once, as views",
        "A loop that only stores its rows takes a tensor apart once, as views.",
    ),
    Row(
        Cause.BESIDE_HOST,
        RESIDENCE,
        FREE,
        "beside a host tensor",
        "An operation with a tensor that is surely on the host shows that the value is there too.",
    ),
    Row(
        Cause.COPY_ASKED,
        FATE,
        COLD,
        "where a copy is asked for",
        "An explicit copy or wait that no step repeats is meant.",
    ),
    Row(
        Cause.HOST_CALLERS,
        RESIDENCE,
        FREE,
        "host data in every call",
        "Every call of the function in the project, except in set-up code, passes values for which "
        "nothing waits: they lie on the host, where no copy arrives late either, or lead past it.",
    ),
    Row(
        Cause.HOST_NAME,
        RESIDENCE,
        FREE,
        "host value by name or use",
        "The value lies on the host by its name, by its use in numpy, or by a move to the "
        "device below.",
    ),
    Row(
        Cause.HOST_ONLY,
        RESIDENCE,
        FREE,
        "where the host is required",
        "The operation fails with a tensor on a device, so the tensor is on the host.",
    ),
    Row(
        Cause.MEASURING,
        FATE,
        FREE,
        "where waiting is the aim",
        "A wait beside a clock or around a recorded graph, and a barrier that no step itself "
        "calls, are the aim of the code.",
    ),
)
BY_CAUSE = {row.cause: row for row in ROWS}
