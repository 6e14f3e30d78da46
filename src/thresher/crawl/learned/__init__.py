"""The policy that learns: what a link tells beforehand, what came of others like it, and what to expect of it."""
