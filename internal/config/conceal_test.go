package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Another machine may name a file of this one where its content cannot be used: no problem shows
// it, and no value of a variable of headgate itself.
func TestProblemsShowNothingOfFiles(t *testing.T) {
	const secret = `root:$6$abcdefgh"ijklmnop:19000`
	file := filepath.Join(t.TempDir(), "shadow")
	if err := os.WriteFile(file, []byte(secret+"\ndaemon:*:19000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HEADGATE_STORE", "postgres://headgate:wonderland@db/headgate")
	t.Setenv("PLACE", "not an address")
	for _, reference := range []string{"${file:" + file + "}", "${HEADGATE_STORE}", "x${file:" + file + "}"} {
		for _, text := range []string{
			"ports: {web: {address: %q, protocol: http}}", "ports: {web: {address: \"127.0.0.1:80\", protocol: %q}}",
			"proxies: {a: {virtual_hosts: [%q], routes: [{fixed_response: {status: 204}}]}}", "proxies: {a: {virtual_hosts: [a.example.com], routes: [{servers: [{url: %q}]}]}}",
			"proxies: {a: {virtual_hosts: [a.example.com], ports: [%q], routes: [{fixed_response: {status: 204}}]}}",
			"proxies: {a: {virtual_hosts: [a.example.com], use: [%q], routes: [{fixed_response: {status: 204}}]}}",
			"proxies: {a: {virtual_hosts: [a.example.com], ip_filter: {allow: [%q]}, routes: [{fixed_response: {status: 204}}]}}",
			"proxies: {a: {virtual_hosts: [a.example.com], request_timeout: %q, routes: [{fixed_response: {status: 204}}]}}",
			"lists: {a: {entries: [%q]}}", "acme: {a: {directory: %q}}", "webhooks: {a: {url: %q}}",
		} {
			_, _, problems := Load("x.yaml", []byte("version: 1\n"+fmt.Sprintf(text, reference)))
			if len(problems) == 0 {
				t.Errorf("no problem of %s with %s", text, reference)
			}
			for _, p := range problems {
				for _, part := range []string{"root:", "$6$abc", "ijklm", "daemon", "wonder", "headgate:"} {
					if strings.Contains(p.Error(), part) {
						t.Errorf("%s with %s: %s", text, reference, p.Error())
					}
				}
			}
		}
	}
	if _, _, problems := Load("x.yaml", []byte(`{version: 1, ports: {web: {address: "${PLACE}", protocol: http}}}`)); !strings.Contains(fmt.Sprint(problems), "not an address") {
		t.Errorf("the value of another variable is not shown: %v", problems)
	}
}
