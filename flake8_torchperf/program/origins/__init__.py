"""Where values come from: literals, the arguments of calls, the line that places a tensor."""
