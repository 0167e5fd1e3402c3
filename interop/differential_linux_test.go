package interop

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

var differentialRequests = flag.Int("requests", 500, "how many requests each configuration of the differential run gets at most")

// TestAnImportAnswersAsItsSource gives a real nginx, HAProxy or Caddy and a headgate with
// the imported document the same generated requests, each in a network of its own with
// the same servers. The configurations are those of testdata/differential, and those of
// the folder that HEADGATE_DIFFERENTIAL names: one below it for each source.
//
// A line "# sends: NAME: VALUE" has some of the requests send this field.
//
// Every request is alike, or different and named by a line of the report (see named), or
// different and unnamed: then the import was wrong without a word, and the test fails. For
// the configurations of the folder, what differs is written to FILE.differs beside them.
func TestAnImportAnswersAsItsSource(t *testing.T) {
	needed(t, "ip", "iproute2")
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	for _, p := range peers {
		t.Run(p.kind, func(t *testing.T) {
			program := needed(t, p.program, p.debian)
			own, _ := filepath.Glob(filepath.Join("testdata/differential", p.kind, "*"))
			var others []string
			if dir := os.Getenv("HEADGATE_DIFFERENTIAL"); dir != "" {
				others, _ = filepath.Glob(filepath.Join(dir, p.kind, "*"))
				others = slices.DeleteFunc(others, func(name string) bool {
					return strings.HasSuffix(name, ".differs") || strings.HasSuffix(name, ".named")
				})
			}
			if len(own) == 0 {
				t.Fatal("there is no configuration in testdata/differential")
			}
			sum := map[string]int{}
			for _, name := range slices.Concat(own, others) {
				t.Run(filepath.Base(name), func(t *testing.T) { p.compare(t, program, name, slices.Contains(own, name), sum) })
			}
			t.Logf("%s: %v", p.kind, sum)
		})
	}
}

// peer is a program that configurations are for.
type peer struct {
	kind, program, debian string
	// check and run are arguments, with the configuration as %s.
	check, run []string
	// prepare makes a configuration run here: without users, logs and files of its own.
	prepare func(text, dir, certificate string) string
}

var peers = []peer{
	{"nginx", "nginx", "nginx-light", []string{"-t", "-q", "-c", "%s"}, []string{"-c", "%s", "-g", "daemon off; master_process off;"}, prepareNginx},
	{"haproxy", "haproxy", "haproxy", []string{"-c", "-q", "-f", "%s"}, []string{"-db", "-f", "%s"}, prepareHAProxy},
	{"caddy", "caddy", "caddy", []string{"validate", "--adapter", "caddyfile", "--config", "%s"}, []string{"run", "--adapter", "caddyfile", "--config", "%s"}, prepareCaddy},
}

// importReport is what a report has of an import.
type importReport struct {
	Entries []struct {
		Line                     int
		Directive, Verdict, Note string
	}
	Check []string
}

func filled(args []string, name string) (out []string) {
	for _, a := range args {
		out = append(out, strings.ReplaceAll(a, "%s", name))
	}
	return out
}

// compare gives both the requests that a configuration suggests.
func (p peer) compare(t *testing.T, program, name string, own bool, sum map[string]int) {
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	conf := filepath.Join(dir, "conf")
	certificate := selfSigned(t, dir, hostsOf(string(data)))
	text := p.prepare(string(data), dir, certificate)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	fixed := inNetwork{Dir: dir, Names: namesOf(text), Addresses: addressesOf(text), Servers: portsOf(text)}
	check := fixed
	check.Command = slices.Concat([]string{program}, filled(p.check, conf))
	check.Only = true
	sum["files"]++
	if refused := check.do(t).Failed; refused != "" {
		if own {
			t.Errorf("%s does not accept it: %s", p.program, refused)
		}
		t.Logf("%s does not accept it: %s", p.program, refused)
		sum["not accepted by the source"]++
		return
	}
	sum["accepted by the source"]++
	report := filepath.Join(dir, "report.json")
	cmd := exec.Command(os.Getenv(binaryFolder), "import", p.kind, conf, "--report", report)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	document, err := cmd.Output()
	var found importReport
	if data, e := os.ReadFile(report); e != nil || json.Unmarshal(data, &found) != nil || len(document) == 0 {
		sum["not imported"]++
		p.differs(t, name, own, fmt.Sprintf("not imported: %v %s", err, stderr.String()))
		return
	}
	for _, e := range found.Entries {
		if sum["directives"]++; e.Verdict == "not_possible" && strings.Contains(e.Note, "does not know this") {
			sum["directives without a verdict"]++
			t.Logf("without a verdict: line %d, %s: %s", e.Line, e.Directive, e.Note)
		}
	}
	file := filepath.Join(dir, "headgate.yaml")
	if err := os.WriteFile(file, []byte("admin: {address: \"\"}\n"+string(document)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(os.Getenv(binaryFolder), "validate", "--config", file).CombinedOutput(); err != nil {
		sum["not valid"]++
		p.differs(t, name, own, fmt.Sprintf("not valid: %s", out))
		return
	}
	sum["valid"]++
	requests := requestsFor(string(data), string(document))
	if len(requests) == 0 {
		sum["without an HTTP port"]++
		return
	}
	theirs, ours := fixed, fixed
	theirs.Requests, ours.Requests = requests, requests
	theirs.Command = slices.Concat([]string{program}, filled(p.run, conf))
	ours.Command = []string{os.Getenv(binaryFolder), "run", "--config", file, "--state", filepath.Join(dir, "state")}
	want := theirs.do(t)
	if theirs.Late = strings.Contains(want.Failed, "it ended"); theirs.Late {
		want = theirs.do(t)
	}
	ours.Late = theirs.Late
	have := ours.do(t)
	if want.Failed != "" || have.Failed != "" {
		sum["not compared"]++
		p.differs(t, name, own, fmt.Sprintf("not compared: %s\n%s", want.Failed, have.Failed))
		return
	}
	p.classify(t, name, own, sum, newSource(p.kind, text), found, requests, want.Answers, have.Answers, balancedPorts(string(document)))
}

// classify counts the requests that are alike, different and named, and different and
// unnamed.
func (p peer) classify(t *testing.T, name string, own bool, sum map[string]int, s *source, found importReport, requests []networkRequest, theirs, ours []networkAnswer, balanced map[string]string) {
	lines := namingLines(found)
	var unnamed, by strings.Builder
	different := 0
	show := func(b *strings.Builder, rq networkRequest, a, z networkAnswer) {
		fmt.Fprintf(b, "%s %s:%d %s%s %q\n    theirs %s\n    ours   %s\n", rq.Method, map[bool]string{true: "https", false: "http"}[rq.TLS], rq.Port, rq.Host, rq.Path, aspects(a, z), a, z)
	}
	told := map[string]bool{} // the lines of which an example is shown
	for i, rq := range requests {
		sum["requests"]++
		a, z := theirs[i].seenAs(rq, balanced), ours[i].seenAs(rq, balanced)
		if a.alike(z) {
			sum["alike"]++
			continue
		}
		if strings.Contains(z.Reason, "ambiguous_path") { // refused in every configuration: docs/guides/coming-from
			sum["refused as ambiguous"]++
			continue
		}
		names, ok := s.named(lines, rq, a, z)
		if !ok {
			sum["different and unnamed"]++
			if different++; different <= 100 {
				show(&unnamed, rq, a, z)
			}
			continue
		}
		sum["different and named"]++
		for _, n := range names {
			if !told[n.String()] {
				told[n.String()] = true
				fmt.Fprintln(&by, n)
				show(&by, rq, a, z)
			}
		}
	}
	if sum["files compared"]++; !own {
		os.WriteFile(name+".named", []byte(by.String()), 0o600)
	}
	if different == 0 {
		sum["files without an unnamed difference"]++
		os.Remove(name + ".differs")
		return
	}
	for _, n := range lines {
		fmt.Fprintln(&unnamed, " ", n)
	}
	fmt.Fprintf(&unnamed, "%d of %d requests are answered otherwise, and no line of the report is why\n", different, len(requests))
	p.differs(t, name, own, unnamed.String())
}

// differs reports what is not alike: as a failure for a configuration of this repository,
// in a file for others.
func (p peer) differs(t *testing.T, name string, own bool, text string) {
	if own {
		t.Error(text)
		return
	}
	if err := os.WriteFile(name+".differs", []byte(text), 0o600); err != nil {
		t.Error(err)
	}
}

var (
	nginxGlobal = regexp.MustCompile(`(?m)^\s*(user|pid|error_log|access_log|daemon|worker_processes|worker_rlimit_nofile|worker_cpu_affinity|load_module|include|ssl_dhparam|ssl_trusted_certificate|ssl_stapling\w*|limit_req|limit_conn|proxy_cache_path|lock_file|master_process|resolver)\s[^;{]*;`)
	nginxFiles  = regexp.MustCompile(`\b(ssl_certificate|ssl_certificate_key|ssl_client_certificate|proxy_ssl_trusted_certificate)\s+[^;]+;`)
	nginxUsers  = regexp.MustCompile(`\bauth_basic_user_file\s+[^;]+;`)
	nginxRoot   = regexp.MustCompile(`(?m)^\s*(http|events)\s*\{`)
	commentLine = regexp.MustCompile(`(?m)^\s*#.*$`)
)

func prepareNginx(text, dir, certificate string) string {
	text = nginxGlobal.ReplaceAllString(commentLine.ReplaceAllString(text, ""), "")
	text = nginxFiles.ReplaceAllString(text, "$1 "+certificate+";")
	users := filepath.Join(dir, "users")
	os.WriteFile(users, []byte("ada:$2y$05$abcdefghijklmnopqrstuuoPjvzm5v3Ypbl4eKb3kU2T2dC2v6l9e\n"), 0o644) // nobody signs in
	text = nginxUsers.ReplaceAllString(text, "auth_basic_user_file "+users+";")
	paths := fmt.Sprintf("access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;\n", dir)
	main := fmt.Sprintf("pid %[1]s/pid; error_log %[1]s/error.log;\n", dir)
	if at := regexp.MustCompile(`(?m)^\s*http\s*\{`).FindStringIndex(text); at != nil {
		text = text[:at[1]] + "\n" + paths + text[at[1]:]
		if !regexp.MustCompile(`(?m)^\s*events\s*\{`).MatchString(text) {
			main += "events {}\n"
		}
		return main + text
	}
	return main + "events {}\nhttp {\n" + paths + text + "\n}\n"
}

var (
	haproxyGlobal = regexp.MustCompile(`(?m)^\s*(chroot|user|group|uid|gid|daemon|pidfile|stats|log|ca-base|crt-base|lua-load|nbproc|ssl-dh-param-file|master-worker|localpeer|server-state-file|server-state-base)\b.*$`)
	haproxyCrt    = regexp.MustCompile(`\b(crt|ca-file|crt-list)\s+\S+`)
)

func prepareHAProxy(text, dir, certificate string) string {
	text = haproxyGlobal.ReplaceAllString(text, "")
	return haproxyCrt.ReplaceAllStringFunc(text, func(s string) string {
		name, _, _ := strings.Cut(s, " ")
		return strings.Replace(name, "crt-list", "crt", 1) + " " + certificate
	}) + "\n"
}

// caddySite is the first line of a site block.
var caddySite = regexp.MustCompile(`(?m)^([^\s#{}(&][^{}]*?)\s*\{[ \t]*$`)

// prepareCaddy serves all sites by http: no certificates can be ordered here.
func prepareCaddy(text, dir, certificate string) string {
	if first, rest, _ := strings.Cut(strings.TrimSpace(commentLine.ReplaceAllString(text, "")), "\n"); !strings.HasSuffix(strings.TrimSpace(first), "{") {
		text = first + " {\n" + rest + "\n}\n" // the only site, whose braces are left out
	}
	text = caddySite.ReplaceAllStringFunc(text, func(line string) string {
		addresses := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), "{"))
		if strings.HasPrefix(addresses, "import ") {
			return line
		}
		var out []string
		for _, a := range strings.FieldsFunc(addresses, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' }) {
			if _, rest, ok := strings.Cut(a, "://"); ok {
				a = rest
			}
			a = strings.TrimSuffix(a, ":443")
			if a == "" {
				a = ":80"
			}
			out = append(out, "http://"+a)
		}
		return strings.Join(out, ", ") + " {"
	})
	head := "{\n\tadmin off\n\tauto_https off\n\tstorage file_system " + dir + "\n"
	if rest, ok := strings.CutPrefix(strings.TrimSpace(text), "{"); ok {
		return head + rest + "\n"
	}
	return head + "}\n" + text + "\n"
}

var (
	hostToken    = regexp.MustCompile(`(?i)(?:^|[\s"'(,{;\x60])(?:https?://)?((?:\*\.)?(?:[a-z0-9_-]+\.)+[a-z]{2,})\b`)
	nameToken    = regexp.MustCompile(`(?i)^(.*://)?([a-z][a-z0-9._-]*)(:[0-9]+)?(?:/.*)?$`)
	addressToken = regexp.MustCompile(`\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b`)
	portToken    = regexp.MustCompile(`:([0-9]{2,5})\b`)
	pathToken    = regexp.MustCompile(`(?:^|[\s"'(^~\x60])(/[A-Za-z0-9._~/-]*)`)
	portEntry    = regexp.MustCompile(`address: '?"?(\S+):([0-9]+)['"]?,?\s+protocol: (http|https)\b`)
)

// serverEntry is a server of a document.
var serverEntry = regexp.MustCompile(`^\s*- \{?(?:url|address): .*:([0-9]+)`)

// balancedPorts returns for each port of a server that shares a route with others the
// first of them: which one answers is a matter of turns.
func balancedPorts(document string) map[string]string {
	out, first := map[string]string{}, ""
	for line := range strings.Lines(document) {
		m := serverEntry.FindStringSubmatch(line)
		switch {
		case m == nil:
			first = ""
		case first == "":
			first = cmp.Or(out[m[1]], m[1])
		}
		if m != nil {
			out[m[1]] = first
		}
	}
	return out
}

func unique(all [][]string) (out []string) {
	for _, m := range all {
		if v := m[len(m)-1]; !slices.Contains(out, v) && len(out) < 300 {
			out = append(out, v)
		}
	}
	return out
}

// hostsOf are names in a configuration that clients may ask for.
func hostsOf(text string) (hosts []string) {
	for _, h := range unique(hostToken.FindAllStringSubmatch(commentLine.ReplaceAllString(text, ""), -1)) {
		if strings.HasPrefix(h, "*.") {
			h = "sub" + h[1:]
		}
		if h = strings.ToLower(h); !slices.Contains([]string{"conf", "pem", "key", "crt", "html", "log", "php", "lst", "map", "http", "cfg"}, h[strings.LastIndexByte(h, '.')+1:]) && !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return hosts[:min(len(hosts), 40)]
}

// namesOf are names that a configuration may send requests to; all are this machine. Those
// with a port or scheme come first, because not all words can be names.
func namesOf(text string) []string {
	var certain, others [][]string
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n;{}\"'", r) }) {
		switch m := nameToken.FindStringSubmatch(word); {
		case m == nil:
		case m[1] != "" || m[3] != "":
			certain = append(certain, m[2:3])
		default:
			others = append(others, m[2:3])
		}
	}
	return unique(slices.Concat(certain, others))
}

// addressesOf are addresses in a configuration that this machine can have.
func addressesOf(text string) (out []string) {
	for _, a := range unique(addressToken.FindAllStringSubmatch(text, -1)) {
		if first, _, _ := strings.Cut(a, "."); first != "0" && first != "127" && len(first) > 0 {
			if n, _ := strconv.Atoi(first); n < 224 {
				out = append(out, a)
			}
		}
	}
	return out
}

// portsOf are ports at which servers of a configuration may be.
func portsOf(text string) []string {
	return append(unique(portToken.FindAllStringSubmatch(text, -1)), "80", "443")
}

// strangers are hosts that few configurations name.
var strangers = []string{"unknown.invalid", "localhost", "127.0.0.1"}

// sendsLine has a field that some of the requests have.
var sendsLine = regexp.MustCompile(`(?m)^# sends: (\S+): (.*)$`)

// requestsFor makes requests, up to the flag -requests, of the hosts and paths in a configuration, as
// they are and changed a little.
func requestsFor(text, document string) (out []networkRequest) {
	hosts := append(hostsOf(text), strangers...)
	paths, changed := []string{"/", "/index.html", "/a/b?c=d&e"}, map[string]string{}
	add := func(p, change string) {
		if strings.HasPrefix(p, "/") && !slices.Contains(paths, p) && len(paths) < 400 {
			paths, changed[p] = append(paths, p), change
		}
	}
	for _, p := range unique(pathToken.FindAllStringSubmatch(commentLine.ReplaceAllString(text, ""), -1)) {
		p = strings.TrimRight(p, ".")
		bare := strings.TrimRight(p, "/")
		add(p, "")
		if bare != p {
			add(bare, "bare")
		} else {
			add(bare+"/", "slash")
		}
		add(bare+"/below?x=1", "below")
		add(bare+"/below/deep.php", "below")
		add(bare+"x", "x")
		add(strings.ToUpper(p), "upper")
	}
	fields := []map[string]string{nil}
	for _, m := range sendsLine.FindAllStringSubmatch(text, -1) {
		fields = append(fields, map[string]string{m[1]: m[2]})
	}
	for _, m := range portEntry.FindAllStringSubmatch(document, -1) {
		port, _ := strconv.Atoi(m[2])
		for _, h := range hosts {
			for _, p := range paths {
				for _, method := range []string{"GET", "POST"} {
					for _, f := range fields {
						out = append(out, networkRequest{Port: port, TLS: m[3] == "https", Host: h, Method: method, Path: p, Change: changed[p], Header: f})
					}
				}
			}
		}
	}
	sum := fnv.New64a()
	sum.Write([]byte(text))
	rand.New(rand.NewPCG(sum.Sum64(), 1)).Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:min(len(out), *differentialRequests)]
}

// do runs a program in a network of its own and sends it the requests.
func (n inNetwork) do(t *testing.T) networkResult {
	t.Helper()
	data, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), networkJob+"=1")
	cmd.Stdin = bytes.NewReader(data)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	out, err := cmd.Output()
	var r networkResult
	if err != nil || json.Unmarshal(out, &r) != nil {
		t.Fatalf("in a network of its own: %v\n%s%s", err, out, stderr.String())
	}
	return r
}
