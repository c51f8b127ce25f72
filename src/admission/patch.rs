//! Explicit operations on the JSON that came in: parents are created, keys are escaped.
