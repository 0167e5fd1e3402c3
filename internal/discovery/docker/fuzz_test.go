package docker

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"headgate/internal/config"
)

// FuzzLabels holds that no labels break anything, that what is told of them is short
// lines, and that a server is always the container itself.
func FuzzLabels(f *testing.F) {
	for _, text := range []string{
		"headgate.host=a.example\nheadgate.port=8080",
		"headgate.http.a.virtual_hosts=a.example\nheadgate.http.a.port=80\nheadgate.http.a.base_path=/x\nheadgate.http.a.scheme=https",
		"headgate.http.a.base_path=@evil.example/\nheadgate.http.a.virtual_hosts=a\nheadgate.http.a.port=1",
		"headgate.tcp.a.ports=web\nheadgate.udp.b.address=0.0.0.0:53\nheadgate.port=53",
		"headgate.enable=yes\nheadgate.=\nheadgate.http=\nheadgate.http..=\nHeadGate.HOST=x",
		"headgate.\u009b31m\u202e=b\nheadgate.http.a.\u009b=\u009b\nheadgate.host=\u202e\u009b",
		"headgate.network=b\nheadgate.host=a\x00b\nheadgate.port=99999",
		"com.docker.compose.project=p\ncom.docker.compose.service=s\nheadgate.host=${HOME}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		labels := map[string]string{}
		for line := range strings.SplitSeq(text, "\n") {
			key, value, _ := strings.Cut(line, "=")
			labels[key] = value
		}
		c := &container{ID: "app", Names: []string{"/app"}, State: "running", Labels: labels}
		c.setName()
		c.keepOurs()
		c.NetworkSettings.Networks = map[string]*attachment{"a": {IPAddress: "172.18.0.2"}, "b": {IPAddress: "172.19.0.2"}}
		w := newWorld("local", &config.Docker{}, here{reaches: true})
		now := time.Unix(1, 0)
		first := w.update(&listing{containers: []*container{c}}, netip.Addr{}, now)
		again := w.update(&listing{containers: []*container{c}}, netip.Addr{}, now)
		if len(first.objects) != len(again.objects) || len(first.issues) != len(again.issues) {
			t.Fatalf("another outcome at the second time")
		}
		for i, o := range first.objects {
			if again.objects[i] != o {
				t.Error("the object was made again")
			}
			for _, s := range o.Servers {
				_, rest, ok := strings.Cut(s.Address, "://")
				if !ok {
					rest = s.Address
				}
				if host, _, _ := strings.Cut(rest, ":"); host != "172.18.0.2" && host != "172.19.0.2" {
					t.Errorf("a server elsewhere: %q", s.Address)
				}
			}
		}
		for i, issue := range first.issues {
			if issue != again.issues[i] {
				t.Errorf("the issue is another one: %+v, %+v", issue, again.issues[i])
			}
			for _, text := range []string{issue.Container, issue.Label, issue.Message, issue.Hint} {
				if len(text) > 3000 || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) || !utf8.ValidString(text) && utf8.ValidString(c.name) {
					t.Errorf("no line: %.200q", text)
				}
			}
		}
	})
}

// FuzzList holds that no answer of an engine breaks anything, and that one which is
// what it should be is read as a JSON decoder reads it.
func FuzzList(f *testing.F) {
	for _, text := range []string{
		`[]`, `[{}]`, `{}`, `null`, ``, `[`, `[{"Id":"a"}`, `[{"Id":"a"},]`, `[{"Id":"a"}{"Id":"b"}]`, `[{"Id":"a","Names":["/a\"]}{"]}]`,
		`[{"Id":"64559fe0","Names":["/web"],"Created":1795334506,"Ports":[{"IP":"127.0.0.1","PrivatePort":80,"PublicPort":9999,"Type":"tcp"}],"Labels":{"headgate.host":"a.example"},"State":"running","Status":"Up 1 second (health: starting)","HostConfig":{"NetworkMode":"net1"},"NetworkSettings":{"Networks":{"net1":{"IPAddress":"172.17.0.2"}}}}]`,
		`[{"Id":"a","Health":{"Status":"healthy","FailingStreak":0}}, {"Id":7}]`, `<html>`, "[{\"Id\":\"\xff\"}]",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := readList(bytes.NewReader(data))
		var want []struct {
			ID string `json:"Id"`
		}
		if json.Unmarshal(data, &want) != nil || string(bytes.TrimSpace(data)) == "null" {
			return
		}
		if err != nil {
			var elements []json.RawMessage
			_ = json.Unmarshal(data, &elements)
			for _, e := range elements {
				if e = bytes.TrimSpace(e); len(e) == 0 || e[0] != '{' {
					return // a list of something else
				}
			}
			t.Fatalf("%q: %v", data, err)
		}
		if len(l.containers)+len(l.unread) != len(want) {
			t.Errorf("%q: %d and %d containers, want %d", data, len(l.containers), len(l.unread), len(want))
		}
	})
}
