// Command kubectl is kubectl, compiled from its own module, for the commands that the documentation shows.
//
// With the single argument parse it runs nothing: each line of its input is a JSON array of arguments, and each
// line of its output says, as a JSON string, why kubectl would not take them; an empty string: it would.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "parse" {
		if err := parse(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "kubectl parse:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(cli.Run(cmd.NewDefaultKubectlCommand()))
}

func parse(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	answers := json.NewEncoder(out)
	for lines.Scan() {
		var args []string
		if err := json.Unmarshal(lines.Bytes(), &args); err != nil {
			return err
		}
		refused := ""
		if err := taken(args); err != nil {
			refused = err.Error()
		}
		if err := answers.Encode(refused); err != nil {
			return err
		}
	}
	return lines.Err()
}

// taken is nil if there is such a command with such flags and so many arguments.
func taken(args []string) error {
	root := cmd.NewKubectlCommand(cmd.KubectlOptions{Arguments: args, IOStreams: genericiooptions.NewTestIOStreamsDiscard()})
	command, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if command == root {
		return fmt.Errorf("no command among %q", args)
	}
	if err := command.ParseFlags(rest); err != nil {
		return err
	}
	if !command.Runnable() {
		return fmt.Errorf("%s has no subcommand %q", command.CommandPath(), command.Flags().Args())
	}
	return command.ValidateArgs(command.Flags().Args())
}
