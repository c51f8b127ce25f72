// Command controlplane is the real control plane that the end-to-end tests run against: etcd,
// kube-apiserver and kube-scheduler, each a subcommand, compiled from their own modules. Three more run kube-scheduler's
// code without any server on what is given as text: feasible has its plugins judge nodes, decide has it place pods, selectors has it
// evaluate CEL expressions.
//
// It must not change what those programs do. It adds one thing: it ends when its standard input
// ends, so that a test that dies by any cause leaves no server behind.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

const usage = "usage: controlplane etcd|kube-apiserver|kube-scheduler|feasible|decide|selectors [flags]"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	name := os.Args[1]
	// The cobra commands below read os.Args themselves.
	os.Args = append([]string{name}, os.Args[2:]...)
	if answer, serves := answers[name]; serves {
		if err := answer(os.Args[1:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			os.Exit(1)
		}
		return
	}
	go endWithStdin()
	switch name {
	case "etcd":
		if err := runEtcd(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "etcd:", err)
			os.Exit(1)
		}
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	default:
		fmt.Fprintf(os.Stderr, "unknown subcommand %q\n%s\n", name, usage)
		os.Exit(2)
	}
}

// endWithStdin ends the process at once when the process that started it closes the pipe or ends.
func endWithStdin() {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "stdin:", err)
	}
	os.Exit(0)
}

// runEtcd serves one member until a signal comes. The flags are the ones of etcd that the tests use.
func runEtcd(args []string) error {
	flags := flag.NewFlagSet("etcd", flag.ExitOnError)
	dataDir := flags.String("data-dir", "", "directory of the store")
	client := flags.String("listen-client-urls", "", "URL to serve clients on")
	advertise := flags.String("advertise-client-urls", "", "URL that clients are told")
	peer := flags.String("listen-peer-urls", "", "URL to serve peers on")
	noFsync := flags.Bool("unsafe-no-fsync", false, "do not wait for the disk")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config := embed.NewConfig()
	config.Dir = *dataDir
	config.UnsafeNoFsync = *noFsync
	config.LogLevel = "error"
	var err [3]error
	config.ListenClientUrls, err[0] = one(*client)
	config.AdvertiseClientUrls, err[1] = one(*advertise)
	config.ListenPeerUrls, err[2] = one(*peer)
	if err := errors.Join(err[:]...); err != nil {
		return err
	}
	etcd, startErr := embed.StartEtcd(config)
	if startErr != nil {
		return startErr
	}
	defer etcd.Close()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	select {
	case <-signals:
		return nil
	case err := <-etcd.Err():
		return err
	}
}

func one(text string) ([]url.URL, error) {
	parsed, err := url.ParseRequestURI(text)
	if err != nil {
		return nil, err
	}
	return []url.URL{*parsed}, nil
}
