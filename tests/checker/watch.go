// Recording: every event of pods and nodes, in the order in which each watch brings them. It must not leave a gap unsaid.

package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

// After so long the recorded events must have come to what a list shows, and every pod to its end.
const settleLimit = 90 * time.Second

// apiServer is a way to ask one API server.
type apiServer struct {
	url, token string
	client     *http.Client
}

// open reads a kubeconfig in JSON with a token and the path of the authority's certificate.
func open(path string) (*apiServer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server    string `json:"server"`
				Authority string `json:"certificate-authority"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Token string `json:"token"`
			} `json:"user"`
		} `json:"users"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(config.Clusters) != 1 || len(config.Users) != 1 {
		return nil, fmt.Errorf("%s: names not exactly one cluster and one user", path)
	}
	cluster := config.Clusters[0].Cluster
	authority, err := os.ReadFile(cluster.Authority)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s: no certificate", cluster.Authority)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	return &apiServer{cluster.Server, config.Users[0].User.Token, &http.Client{Transport: transport}}, nil
}

func (server *apiServer) get(path string) (*http.Response, error) {
	request, err := http.NewRequest(http.MethodGet, server.url+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+server.token)
	request.Header.Set("Accept", "application/json")
	response, err := server.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		response.Body.Close()
		return nil, &refusal{response.StatusCode, string(body)}
	}
	return response, nil
}

type refusal struct {
	code int
	body string
}

func (refusal *refusal) Error() string {
	return fmt.Sprintf("%d: %s", refusal.code, refusal.body)
}

type list struct {
	Metadata Metadata  `json:"metadata"`
	Items    []*Object `json:"items"`
}

func (server *apiServer) list(plural string) (*list, uint64, error) {
	response, err := server.get("/api/v1/" + plural)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	var found list
	if err := json.NewDecoder(response.Body).Decode(&found); err != nil {
		return nil, 0, err
	}
	version, err := strconv.ParseUint(found.Metadata.ResourceVersion, 10, 64)
	return &found, version, err
}

// recorder writes histories down; many may write.
type recorder struct {
	lock sync.Mutex
	file *os.File
	out  *bufio.Writer
}

func (recorder *recorder) write(entry Entry) {
	recorder.lock.Lock()
	defer recorder.lock.Unlock()
	if err := json.NewEncoder(recorder.out).Encode(entry); err != nil {
		end(2, err)
	}
}

// follower keeps the newest version of each object of a kind, by uid.
type follower struct {
	server       *apiServer
	plural, kind string
	recorder     *recorder
	lock         sync.Mutex
	seen         map[string]string
}

// watch records until standard input ends and then until the events have come to what a list shows.
func watch(kubeconfig, history string) error {
	server, err := open(kubeconfig)
	if err != nil {
		return err
	}
	file, err := os.Create(history)
	if err != nil {
		return err
	}
	recorder := &recorder{file: file, out: bufio.NewWriter(file)}
	followers := []*follower{
		{server: server, plural: "pods", kind: "Pod", recorder: recorder, seen: map[string]string{}},
		{server: server, plural: "nodes", kind: "Node", recorder: recorder, seen: map[string]string{}},
	}
	for _, follower := range followers {
		version, err := follower.begin("LISTED")
		if err != nil {
			return err
		}
		go follower.follow(version)
	}
	fmt.Println("watching")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	limit := time.Now().Add(settleLimit)
	for {
		last, err := settle(followers)
		if err != nil {
			return err
		}
		if err := recorder.flush(); err != nil {
			return err
		}
		report, err := judgeFile(history)
		if err != nil {
			return err
		}
		if len(report.Lost) == 0 || time.Now().After(limit) {
			recorder.write(Entry{Version: last, Type: "END"})
			return errors.Join(recorder.flush(), file.Close())
		}
		time.Sleep(time.Second)
	}
}

// flush is followed by more writes only while nothing is lost by it: the watches go on.
func (recorder *recorder) flush() error {
	recorder.lock.Lock()
	defer recorder.lock.Unlock()
	return recorder.out.Flush()
}

func settle(followers []*follower) (uint64, error) {
	var last uint64
	for _, follower := range followers {
		version, err := follower.settle()
		if err != nil {
			return 0, err
		}
		last = max(last, version)
	}
	return last, nil
}

// begin lists, and records what there is.
func (follower *follower) begin(kind string) (uint64, error) {
	found, version, err := follower.server.list(follower.plural)
	if err != nil {
		return 0, err
	}
	if kind == "GAP" {
		follower.recorder.write(Entry{Version: version, Type: "GAP", Kind: follower.kind})
	}
	for _, object := range found.Items {
		follower.record("LISTED", object)
	}
	return version, nil
}

func (follower *follower) follow(version uint64) {
	for {
		next, err := follower.stream(version)
		version = next
		var refused *refusal
		if errors.As(err, &refused) && refused.code == http.StatusGone {
			fmt.Fprintf(os.Stderr, "checker: %s after %d are gone: %v\n", follower.plural, version, err)
			if relisted, err := follower.begin("GAP"); err == nil {
				version = relisted
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// stream takes in one watch until it breaks; the version from which to go on.
func (follower *follower) stream(version uint64) (uint64, error) {
	response, err := follower.server.get(fmt.Sprintf("/api/v1/%s?watch=1&allowWatchBookmarks=true&resourceVersion=%d", follower.plural, version))
	if err != nil {
		return version, err
	}
	defer response.Body.Close()
	decoder := json.NewDecoder(response.Body)
	for {
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := decoder.Decode(&event); err != nil {
			return version, err
		}
		if event.Type == "ERROR" {
			var status struct {
				Code    int    `json:"code"`
				Message string `json:"message"`
			}
			if err := json.Unmarshal(event.Object, &status); err != nil {
				return version, err
			}
			return version, &refusal{status.Code, status.Message}
		}
		var object Object
		if err := json.Unmarshal(event.Object, &object); err != nil {
			return version, err
		}
		reached, err := object.version()
		if err != nil {
			return version, err
		}
		version = reached
		if event.Type != "BOOKMARK" {
			follower.record(event.Type, &object)
		}
	}
}

func (follower *follower) record(kind string, object *Object) {
	version, err := object.version()
	if err != nil {
		end(2, err)
	}
	follower.recorder.write(Entry{Version: version, Type: kind, Kind: follower.kind, Object: object})
	follower.lock.Lock()
	defer follower.lock.Unlock()
	if kind == "DELETED" {
		delete(follower.seen, object.Metadata.UID)
	} else {
		follower.seen[object.Metadata.UID] = object.Metadata.ResourceVersion
	}
}

// settle waits until the events have come to exactly what a list shows: then none was missed.
func (follower *follower) settle() (uint64, error) {
	limit := time.Now().Add(settleLimit)
	for {
		found, version, err := follower.server.list(follower.plural)
		if err == nil && follower.is(found) {
			return version, nil
		}
		if time.Now().After(limit) {
			return 0, fmt.Errorf("the recorded %s differ from the list for %v (%v)", follower.plural, settleLimit, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (follower *follower) is(found *list) bool {
	follower.lock.Lock()
	defer follower.lock.Unlock()
	if len(found.Items) != len(follower.seen) {
		return false
	}
	for _, object := range found.Items {
		if follower.seen[object.Metadata.UID] != object.Metadata.ResourceVersion {
			return false
		}
	}
	return true
}
