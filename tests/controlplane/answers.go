//go:build !servers

package main

import "io"

// answers are the commands that run kube-scheduler's own code on what is given as text.
var answers = map[string]func([]string, io.Reader, io.Writer) error{"feasible": runFeasible, "decide": runDecide, "selectors": runSelectors}
