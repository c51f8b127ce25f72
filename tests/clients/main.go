// kubectl, built as k8s.io/kubernetes builds it. Its own main package is in the module of the control plane, which no other module can require as it is.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() {
	os.Exit(cli.Run(cmd.NewDefaultKubectlCommand()))
}
