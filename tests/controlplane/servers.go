//go:build servers

package main

import "io"

// answers is empty: the code of kube-scheduler that those commands call is another before 1.36, and what they answer is compared with newer releases alone.
var answers map[string]func([]string, io.Reader, io.Writer) error
