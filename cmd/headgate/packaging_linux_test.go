package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"headgate/internal/certs"
	"headgate/internal/testhouse"
)

const packaging = "../../packaging/"

// image is what the last stage of the Dockerfile says.
type image struct {
	copies          [][3]string // source, target, owner
	user            string
	env             []string
	expose          []string
	volume          string
	entrypoint, cmd []string
}

// readImage reads the last stage of the Dockerfile.
func readImage(t *testing.T) (i image) {
	t.Helper()
	data, err := os.ReadFile(packaging + "Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	list := func(text string) (words []string) {
		if err := json.Unmarshal([]byte(text[strings.Index(text, "["):]), &words); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return words
	}
	_, last, ok := strings.Cut(strings.ReplaceAll(string(data), "\\\n", " "), "FROM scratch\n")
	if !ok {
		t.Fatal("the image is not made from scratch")
	}
	for line := range strings.Lines(last) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		words := strings.Fields(rest)
		switch word {
		case "COPY":
			c := [3]string{words[len(words)-2], words[len(words)-1]}
			for _, w := range words {
				if owner, ok := strings.CutPrefix(w, "--chown="); ok {
					c[2] = owner
				}
			}
			i.copies = append(i.copies, c)
		case "USER":
			i.user = rest
		case "ENV":
			i.env = words
		case "EXPOSE":
			i.expose = words
		case "VOLUME":
			i.volume = rest
		case "ENTRYPOINT":
			i.entrypoint = list(rest)
		case "CMD":
			i.cmd = list(rest)
		}
	}
	return i
}

// binary builds headgate as it is released.
func binary(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "headgate")
	build := exec.Command("go", "build", "-trimpath", "-o", name, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return name
}

// needsRoot skips a test that cannot make a mount namespace.
func needsRoot(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip(err)
		}
	}
	if err := exec.Command("unshare", "--mount", "true").Run(); err != nil {
		t.Skip("no mount namespace can be made here:", err)
	}
}

// place makes the file tree of the image, and returns its root.
func (i *image) place(t *testing.T, program string) string {
	t.Helper()
	root, err := os.MkdirTemp("", "hg") // short, as a socket stands in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range i.copies {
		to := filepath.Join(root, c[1])
		switch {
		case c[0] == "/out/headgate":
			data, err := os.ReadFile(program)
			if err == nil {
				err = os.MkdirAll(filepath.Dir(to), 0o755)
			}
			if err == nil {
				err = os.WriteFile(to, data, 0o755)
			}
			if err != nil {
				t.Fatal(err)
			}
		case strings.HasPrefix(c[0], "/out/"):
			if err := os.MkdirAll(to, 0o755); err != nil {
				t.Fatal(err)
			}
			if c[2] != "" {
				var uid, gid int
				fmt.Sscanf(c[2], "%d:%d", &uid, &gid)
				if err := os.Chown(to, uid, gid); err != nil {
					t.Fatal(err)
				}
			}
		} // certificates and time zones are not asked for here
	}
	return root
}

// files returns what stands below a root but for one folder.
func files(t *testing.T, root, but string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && path == filepath.Join(root, but) {
			return fs.SkipDir
		}
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// process is a program that runs, and its log.
type process struct {
	cmd *exec.Cmd
	mu  sync.Mutex
	log bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// startProcess starts a program; it is stopped when the test ends.
func startProcess(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd}
	cmd.Stderr, cmd.Stdout = p, p
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.end(t) })
	return p
}

// end stops the program as a service manager does.
func (p *process) end(t *testing.T) {
	if p.cmd == nil {
		return
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	p.cmd = nil
	if t.Failed() {
		t.Log(p.text())
	}
}

// TestTheImageStartsEmpty runs the file tree of the image with a read-only root, as the
// user of the image, with nothing but its volume to write to.
func TestTheImageStartsEmpty(t *testing.T) {
	needsRoot(t, "unshare", "mount", "chroot")
	i := readImage(t)
	root := i.place(t, binary(t))
	address := testhouse.Address(t)
	env := append(slices.Clone(i.env), "HEADGATE_LOG_FORMAT=json")
	for n, e := range env {
		if strings.HasPrefix(e, "HEADGATE_ADMIN_ADDRESS=0.0.0.0:") {
			_, port, _ := net.SplitHostPort(address)
			env[n] = "HEADGATE_ADMIN_ADDRESS=0.0.0.0:" + port
		}
	}
	before := files(t, root, i.volume)
	run := func() *process {
		// The root is read-only, the volume is not.
		script := `set -e
mount --bind "$0" "$0"
mount --bind "$0$1" "$0$1"
mount -o remount,ro,bind "$0"
root=$0; user=$2; shift 3
exec chroot --userspec="$user" "$root" "$@"`
		args := append([]string{"--mount", "sh", "-c", script, root, i.volume, i.user, "--"}, append(slices.Clone(i.entrypoint), i.cmd...)...)
		cmd := exec.Command("unshare", args...)
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
		return startProcess(t, cmd)
	}
	p := run()
	base := "https://" + address
	var cert []byte
	testhouse.Eventually(t, "the admin listener answers by TLS", func() bool {
		status, _, shown := fetch("GET", base+"/readyz", "")
		cert = shown
		return status == 200
	})
	if text := p.text(); !strings.Contains(text, `"sha256_fingerprint":"`+certs.Fingerprint(cert)+`"`) {
		t.Errorf("the log does not tell the fingerprint %s\n%s", certs.Fingerprint(cert), text)
	}
	link := regexp.MustCompile(`"link":"https://[0-9a-f.:\[\]]+/setup#([A-Za-z0-9_-]{43})"`)
	testhouse.Eventually(t, "the log has the link", func() bool { return link.MatchString(p.text()) })
	token := link.FindStringSubmatch(p.text())[1]
	if status, body, _ := fetch("POST", base+"/api/v1/setup", `{"token":"`+token+`","name":"ann","password":"correct horse battery"}`); status != 201 {
		t.Fatalf("set up: %d %s", status, body)
	}

	// Commands in the container, its health check among them, ask by the socket.
	inside := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("chroot", append([]string{"--userspec=" + i.user, root}, args...)...)
		cmd.Env = env
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := inside(composeOf(t, "compose.yaml").Services["headgate"].Healthcheck.Test[1:]...); strings.TrimSpace(out) != "ok" {
		t.Errorf("health check: %s", out)
	}
	bearer := "Authorization: Bearer " + strings.Fields(inside("/usr/bin/headgate", "token", "create", "all", "--role", "admin"))[0]
	if !strings.HasPrefix(bearer, "Authorization: Bearer hg_") {
		t.Fatal(bearer)
	}
	web := testhouse.Address(t)
	for path, body := range map[string]string{
		"/ports":   fmt.Sprintf(`{"name":"web","address":%q,"protocol":"http"}`, web),
		"/proxies": `{"name":"shop","routes":[{"fixed_response":{"status":410}}]}`,
	} {
		if status, body, _ := fetch("POST", base+"/api/v1"+path, body, bearer, "If-Match: *"); status != 201 {
			t.Fatalf("POST %s: %d %s", path, status, body)
		}
	}
	testhouse.Eventually(t, "the port serves", func() bool { status, _, _ := fetch("GET", "http://"+web+"/", ""); return status == 410 })
	p.end(t)
	if after := files(t, root, i.volume); !slices.Equal(before, after) {
		t.Errorf("something was written beside the volume: %v, was %v", after, before)
	}

	// Another container with the same volume serves the same.
	run()
	testhouse.Eventually(t, "the port serves again", func() bool { status, _, _ := fetch("GET", "http://"+web+"/", ""); return status == 410 })
}

// composeFile is what the Compose files use of Compose.
type composeFile struct {
	Name     string
	Services map[string]struct {
		Image       string
		Build       struct{ Context, Dockerfile string }
		Restart     string
		DependsOn   []string `yaml:"depends_on"`
		Ports       []string
		Networks    []string
		Configs     []struct{ Source, Target string }
		Environment map[string]string
		Labels      map[string]string
		Volumes     []string
		Tmpfs       []string
		Healthcheck struct {
			Test        []string
			Interval    string
			Timeout     string
			StartPeriod string `yaml:"start_period"`
		}
		// The keys that follow make it safe.
		ReadOnly    bool              `yaml:"read_only"`
		CapDrop     []string          `yaml:"cap_drop"`
		SecurityOpt []string          `yaml:"security_opt"`
		Sysctls     map[string]string `yaml:"sysctls"`
		StopGrace   string            `yaml:"stop_grace_period"`
	}
	Configs  map[string]struct{ Content string }
	Networks map[string]struct {
		Name     string
		Internal bool
	}
	Volumes map[string]any
}

// composeOf reads a Compose file as Compose does, as far as it goes.
func composeOf(t *testing.T, name string) (c composeFile) {
	t.Helper()
	data, err := os.ReadFile(packaging + name)
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestComposeFilesFitTheImage compares the service headgate of each Compose file with the
// image.
func TestComposeFilesFitTheImage(t *testing.T) {
	i := readImage(t)
	for _, name := range []string{"compose.yaml", "compose.discovery.yaml"} {
		c := composeOf(t, name)
		s := c.Services["headgate"]
		if _, err := os.Stat(filepath.Join(packaging, s.Build.Context, s.Build.Dockerfile)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var inside []string
		for _, p := range s.Ports {
			inside = append(inside, p[strings.LastIndexByte(p, ':')+1:])
			if strings.HasSuffix(p, ":9080") && !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: %s: the admin listener is published to everybody", name, p)
			}
		}
		if !slices.Equal(inside, i.expose) {
			t.Errorf("%s: published are %v, the image has %v", name, inside, i.expose)
		}
		if len(s.Volumes) != 1 || s.Volumes[0] != "state:"+i.volume {
			t.Errorf("%s: volumes %v, the image keeps its state in %s", name, s.Volumes, i.volume)
		}
		if _, ok := c.Volumes["state"]; !ok || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || s.Sysctls["net.ipv4.ip_unprivileged_port_start"] != "0" {
			t.Errorf("%s: %+v", name, s)
		}
		if !slices.Equal(s.Healthcheck.Test, []string{"CMD", "/usr/bin/headgate", "health"}) {
			t.Errorf("%s: health check %v", name, s.Healthcheck.Test)
		}
	}
	if !slices.Contains(i.env, "HEADGATE_STATE="+i.volume) || !slices.Equal(i.cmd, []string{"run"}) {
		t.Errorf("the image runs %v with %v", i.cmd, i.env)
	}
}

// TestComposeFileOfSeveralMachines checks that its two services differ in what has to differ,
// that run has the settings in their environment, and that the database is reached by the
// socket that all of them have.
func TestComposeFileOfSeveralMachines(t *testing.T) {
	c, i := composeOf(t, "compose.postgres.yaml"), readImage(t)
	names, published := map[string]bool{}, map[string]bool{}
	for _, name := range []string{"a", "b"} {
		s := c.Services[name]
		for variable := range s.Environment {
			flag := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, "HEADGATE_"), "_", "-"))
			if variable != storeKeyVariable && newRun(nil).Flags().Lookup(flag) == nil {
				t.Errorf("%s: run has no flag for %s", name, variable)
			}
		}
		at, err := storeAddress(s.Environment["HEADGATE_STORE"])
		if err != nil {
			t.Fatal(err)
		}
		socket := "socket:" + at.Query().Get("host")
		if !slices.Equal(s.Volumes, []string{"state-" + name + ":" + i.volume, socket}) || !slices.Contains(c.Services["postgres"].Volumes, socket) {
			t.Errorf("%s: volumes %v, the database is at %s", name, s.Volumes, at)
		}
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.Healthcheck.Test, []string{"CMD", "/usr/bin/headgate", "health"}) {
			t.Errorf("%s: %+v", name, s)
		}
		names[s.Environment["HEADGATE_NODE"]] = true
		for _, p := range s.Ports {
			if published[p[:strings.LastIndexByte(p, ':')]+p[len(p)-3:]] {
				t.Errorf("%s: %s is published twice", name, p)
			}
			published[p[:strings.LastIndexByte(p, ':')]+p[len(p)-3:]] = true
		}
	}
	if len(names) != 2 || len(c.Services["postgres"].Ports) > 0 {
		t.Errorf("machines %v; the database publishes %v", names, c.Services["postgres"].Ports)
	}
}

// TestDiscoveryComposeFileIsServed checks the configuration inside the Compose file with
// discovery, and that only the socket proxy sees the socket of the engine.
func TestDiscoveryComposeFileIsServed(t *testing.T) {
	c := composeOf(t, "compose.discovery.yaml")
	name := filepath.Join(t.TempDir(), "headgate.yaml")
	text := c.Configs[c.Services["headgate"].Configs[0].Source].Content
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := execute([]string{"validate", "--config", name}, stdio{strings.NewReader(""), &out, &errs}); code != 0 {
		t.Errorf("validate: %d\n%s%s", code, &out, &errs)
	}
	if !strings.Contains(text, "network: "+c.Networks["web"].Name) || c.Networks["web"].Name == "" || !c.Networks["engine"].Internal {
		t.Errorf("networks %+v do not fit\n%s", c.Networks, text)
	}
	for service, s := range c.Services {
		for _, v := range s.Volumes {
			if strings.Contains(v, "docker.sock") && (service != "socket-proxy" || len(s.Ports) > 0 || !slices.Equal(s.Networks, []string{"engine"})) {
				t.Errorf("%s can reach the socket of the engine: %+v", service, s)
			}
		}
	}
}

// TestImagesOfAReleaseAreThoseOfTheDockerfile compares the configuration that the release
// tool gives its images with the Dockerfile, and that the Dockerfile builds the console.
func TestImagesOfAReleaseAreThoseOfTheDockerfile(t *testing.T) {
	i := readImage(t)
	tool, err := os.ReadFile("../../tools/release/image.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range append(slices.Clone(i.env), i.user, i.entrypoint[0], i.cmd[0], i.volume) {
		if !strings.Contains(string(tool), strconv.Quote(want)) {
			t.Errorf("tools/release/image.go lacks %q of the Dockerfile", want)
		}
	}
	for _, port := range i.expose {
		if !strings.Contains(port, "/") {
			port += "/tcp"
		}
		if !strings.Contains(string(tool), strconv.Quote(port)) {
			t.Errorf("tools/release/image.go lacks port %s of the Dockerfile", port)
		}
	}
	dockerfile, err := os.ReadFile(packaging + "Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?s)AS console\n.*npm ci.*npm run build.*AS build\n.*COPY --from=console \S+/dist \S+\nRUN CGO_ENABLED=0 .*go build`).Match(dockerfile) {
		t.Error("the Dockerfile does not put the console into the binary")
	}
	versions, err := os.ReadFile("../../.tool-versions")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(versions)) {
		name, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		if image := map[string]string{"golang": "golang:", "nodejs": "node:"}[name] + version + "-"; !strings.Contains(string(dockerfile), image) {
			t.Errorf("the Dockerfile does not build with %s", image)
		}
	}
}

// TestPackagesHaveTheirFiles checks that packaging/nfpm.yaml names files that exist, that
// shells read all scripts, and that no package has a configuration file.
func TestPackagesHaveTheirFiles(t *testing.T) {
	data, err := os.ReadFile(packaging + "nfpm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	sources := regexp.MustCompile(`(?:src|preinstall|postinstall|preremove|postremove|preupgrade|postupgrade): "?(packaging/[^",}\s]+|LICENSE)`).FindAllStringSubmatch(string(data), -1)
	if len(sources) < 15 {
		t.Fatalf("nfpm.yaml has only the sources %v", sources)
	}
	for _, m := range sources {
		if _, err := os.Stat("../../" + m[1]); err != nil {
			t.Error(err)
		}
	}
	if strings.Contains(string(data), "type: config") || strings.Contains(string(data), "dst: /etc/headgate") {
		t.Error("a package installs a configuration file, which the console could not change")
	}
	scripts, err := filepath.Glob(packaging + "scripts/*")
	if err != nil || len(scripts) < 10 {
		t.Fatal(scripts, err)
	}
	for _, name := range append(scripts, packaging+"linux/openrc", packaging+"install.sh") {
		if out, err := exec.Command("sh", "-n", name).CombinedOutput(); err != nil {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// TestTheUnitIsSound has systemd itself read the unit.
func TestTheUnitIsSound(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip(err)
	}
	data, err := os.ReadFile(packaging + "headgate.service")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(data), "/usr/bin/headgate", "/bin/true") // which is there
	unit := filepath.Join(t.TempDir(), "headgate.service")
	if err := os.WriteFile(unit, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-analyze", "verify", "--man=no", unit).CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestTheUnitStartsEmpty runs headgate as the unit does: another user, with the right to
// open low ports and no other, where nothing but the state directory can be written.
func TestTheUnitStartsEmpty(t *testing.T) {
	needsRoot(t, "unshare", "mount", "setpriv")
	program := binary(t)
	dir, err := os.MkdirTemp("", "hg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	state, exe := filepath.Join(dir, "state"), filepath.Join(dir, "headgate")
	for _, err := range []error{os.Chmod(dir, 0o755), os.Mkdir(state, 0o700), os.Chown(state, 61184, 61184), os.Rename(program, exe)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	if err := os.Chmod(filepath.Join(dir, "notify"), 0o777); err != nil {
		t.Fatal(err)
	}
	script := `set -e
mount --make-rprivate /
mount --bind "$0" "$0"
mount -o remount,ro,bind /
cd /
exec setpriv --reuid 61184 --regid 61184 --clear-groups --no-new-privs --inh-caps +net_bind_service --ambient-caps +net_bind_service --bounding-set -all,+net_bind_service -- "$1" run`
	cmd := exec.Command("unshare", "--mount", "sh", "-c", script, state, exe)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "STATE_DIRECTORY=" + state, "NOTIFY_SOCKET=" + filepath.Join(dir, "notify"), "HEADGATE_ADMIN_ADDRESS=" + testhouse.Address(t)}
	p := startProcess(t, cmd)
	buffer := make([]byte, 1024)
	told.SetReadDeadline(time.Now().Add(patience))
	n, err := told.Read(buffer)
	if err != nil || !strings.Contains(string(buffer[:n]), "READY=1") {
		t.Fatalf("told systemd %q, %v\n%s", buffer[:n], err, p.text())
	}
	if info, err := os.Stat(filepath.Join(state, configName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the configuration: %v, %v", info, err)
	}
	status := exec.Command(exe, "status", "--state", state)
	if out, err := status.CombinedOutput(); err != nil || !strings.Contains(string(out), "headgate is serving") {
		t.Errorf("status by root: %v\n%s", err, out)
	}
}
