// Command checker says from the outside whether a cluster's GPU cards were ever given away twice and whether a pod was lost.
//
// It reads the API server and nothing else, and shares no code with any scheduler: it has its own readers of what is written on
// pods and nodes. It uses the standard library alone, so that it builds without a network.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

const usage = `usage:
  checker watch KUBECONFIG HISTORY   record every event of pods and nodes until standard input ends
                                     and no pod is lost any more, or for so long that it is lost for good
  checker judge HISTORY              replay the events by resourceVersion and print a report; exit code 1: something is wrong`

func main() {
	switch {
	case len(os.Args) == 4 && os.Args[1] == "watch":
		end(0, watch(os.Args[2], os.Args[3]))
	case len(os.Args) == 3 && os.Args[1] == "judge":
		report, err := judgeFile(os.Args[2])
		if err != nil {
			end(2, err)
		}
		text, err := json.MarshalIndent(report, "", "  ")
		if err != nil {
			end(2, err)
		}
		fmt.Println(string(text))
		if len(report.Violations)+len(report.Lost) > 0 {
			os.Exit(1)
		}
	default:
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
}

func end(code int, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "checker:", err)
		os.Exit(2)
	}
	os.Exit(code)
}

func judgeFile(path string) (*Report, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	history, err := read(bufio.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return judge(history), nil
}

func read(from io.Reader) ([]Entry, error) {
	decoder := json.NewDecoder(from)
	var history []Entry
	for {
		var entry Entry
		err := decoder.Decode(&entry)
		if err == io.EOF {
			return history, nil
		}
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", len(history)+1, err)
		}
		history = append(history, entry)
	}
}
