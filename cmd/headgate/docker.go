package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"headgate/internal/config"
	"headgate/internal/discovery"
	"headgate/internal/discovery/docker"
	"headgate/internal/schema"
)

func newDocker() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "docker",
		Short: "Check the labels of containers",
		Args:  noArguments,
	}
	cmd.AddCommand(newDockerCheck())
	return cmd
}

func newDockerCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check FILE | CONTAINER",
		Short: "Show which proxies the labels of a Compose file or a container define",
		Long: `check shows which proxies the labels of a Compose file or a running container define, and
every label that cannot be used, with the remedy. It respects the restrictions of the
provider and the objects of the configuration, if there is one.

For a file, check starts nothing and does not contact an engine, so ports that only an
image exposes are missing. It does not substitute variables; run docker compose config for
that and pass - to read standard input. A container is looked up at the engine of the
provider.

Exit codes: 0 all labels can be used, 1 some cannot, 2 invalid command line.`,
		Example: `  headgate docker check compose.yaml
  docker compose config | headgate docker check -
  headgate docker check shop-web-1 --provider local -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("expected a Compose file or the name of a container, got %d arguments", len(args))
			}
			return nil
		},
	}
	file := addConfig(cmd)
	provider := cmd.Flags().String("provider", "", "`NAME` of the entry of discovery.docker; optional if there is only one")
	output := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := &dockerCheck{documents: config.New()}
		if err := c.load(cmd, *file); err != nil {
			return err
		}
		if err := c.choose(*provider); err != nil {
			return err
		}
		if err := c.inspect(cmd, args[0]); err != nil {
			return err
		}
		if output.value == "json" {
			if err := c.printJSON(cmd.OutOrStdout()); err != nil {
				return err
			}
		} else {
			c.print(screen{cmd.OutOrStdout()}, args[0])
		}
		if len(c.Issues) > 0 {
			return &exitError{code: exitInvalid}
		}
		return nil
	}
	return cmd
}

// dockerCheck is what labels give.
type dockerCheck struct {
	Objects []checkedObject   `json:"objects"`
	Issues  []discovery.Issue `json:"issues"`

	documents *config.Config
	dir       string
	alone     bool // there is no configuration
	provider  string
	settings  *config.Docker
}

// checkedObject is one object that labels define.
type checkedObject struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Container string `json:"container"`
	// Used is whether it would be used.
	Used    bool            `json:"used"`
	Servers []string        `json:"servers"`
	Object  json.RawMessage `json:"object,omitempty"`

	hosts []string
}

// load reads the configuration. Without one, only the labels themselves are checked.
func (c *dockerCheck) load(cmd *cobra.Command, file string) error {
	_, err := configPath(file, "")
	if c.alone = file == "" && err != nil; c.alone {
		return nil
	}
	name, documents, err := readDocuments(cmd, file)
	if err != nil {
		return err
	}
	cfg, _, problems := config.LoadDocuments(documents, nil)
	if len(problems) > 0 {
		return fmt.Errorf("%s is not valid: %v; run headgate validate to list all problems", name, problems[0].Error())
	}
	c.documents, c.dir = cfg, documents.Dir
	return nil
}

// choose finds the provider.
func (c *dockerCheck) choose(name string) error {
	all := c.documents.Discovery.Docker
	switch {
	case name != "" && all[name] == nil:
		return usage("there is no provider %q in the configuration", name)
	case name != "":
		c.provider, c.settings = name, all[name]
	case len(all) == 1:
		for c.provider, c.settings = range all {
		}
	case len(all) > 1:
		return usage("the configuration has several providers; select one with --provider")
	default:
		c.provider, c.settings = "docker", &config.Docker{Endpoint: "unix:///var/run/docker.sock"}
	}
	return nil
}

// inspect finds out what the labels give.
func (c *dockerCheck) inspect(cmd *cobra.Command, what string) error {
	data, err := readCompose(cmd.InOrStdin(), what)
	var found *discovery.Snapshot
	concerns := func(string) bool { return true }
	switch {
	case err == nil:
		found, err = docker.Compose(what, data, c.provider, c.settings)
	case !errors.Is(err, os.ErrNotExist):
	case strings.HasSuffix(what, ".yaml") || strings.HasSuffix(what, ".yml") || strings.ContainsAny(what, `/\`):
	default:
		concerns = func(container string) bool { return container == what }
		found, err = docker.Inspect(cmd.Context(), c.provider, c.settings, discovery.Environment{Dir: c.dir})
	}
	if err != nil {
		return err
	}
	c.merge(found, concerns)
	if len(c.Objects)+len(c.Issues) == 0 && len(found.Objects) > 0 && !concerns("") {
		return fmt.Errorf("no running container %q has headgate labels", what)
	}
	return nil
}

// maxComposeFile is the largest Compose file that is read, in bytes.
const maxComposeFile = 4 << 20

// readCompose reads a file, or standard input when it is called "-".
func readCompose(stdin io.Reader, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(stdin, maxComposeFile+1))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxComposeFile+1))
}

// merge combines the configuration with the discovered objects.
func (c *dockerCheck) merge(found *discovery.Snapshot, concerns func(container string) bool) {
	m := discovery.Merge(c.documents, []discovery.Provider{{Name: c.provider, Bounds: c.settings.Bounds(), Objects: found.Objects, Issues: found.Issues}}, nil, nil)
	c.Objects, c.Issues = []checkedObject{}, []discovery.Issue{}
	for _, d := range found.Objects {
		about := concerns(d.Origin.Container)
		o := checkedObject{Kind: d.Kind, Name: d.Name, Container: d.Origin.Container, Servers: []string{}}
		for _, s := range d.Servers {
			about = about || concerns(s.Container)
			o.Servers = append(o.Servers, shownServer(s))
		}
		if !about {
			continue
		}
		f := config.Find(d, c.settings.Ports)
		in := m.Config.Found(d.Kind, d.Name)
		o.Used = in != nil && in.Discovered == d || c.alone && onlyMissing(m.Issues, d)
		if f.Object != nil {
			o.Object = config.KindOf(d.Kind).Schema().AppendJSON(nil, reflect.ValueOf(f.Object).Elem(), "", schema.Form{Mask: true})
		}
		switch p := f.Object.(type) {
		case *config.Proxy:
			o.hosts = p.VirtualHosts
		case *config.TCPProxy:
			o.hosts = p.SNI
		}
		c.Objects = append(c.Objects, o)
	}
	for _, i := range m.Issues {
		if concerns(i.Container) && !(c.alone && i.Code == discovery.NoSuchObject) {
			c.Issues = append(c.Issues, i)
		}
	}
	slices.SortFunc(c.Objects, func(a, b checkedObject) int { return strings.Compare(a.Kind+"/"+a.Name, b.Kind+"/"+b.Name) })
}

// onlyMissing reports whether an object was omitted only because it refers to names that do
// not exist here.
func onlyMissing(issues []discovery.Issue, d *config.Discovered) bool {
	missing := false
	for _, i := range issues {
		if i.Kind != d.Kind || i.Name != d.Name {
			continue
		}
		switch i.Code {
		case discovery.NoSuchObject:
			missing = true
		case discovery.BadValue, discovery.Invalid, discovery.UnknownLabel, discovery.NotForLabels, discovery.Conflict, discovery.HostTaken, discovery.OutOfBounds, discovery.OwnSocket, discovery.TooMany, discovery.NoHost:
			return false
		}
	}
	return missing
}

// shownServer returns a server with the name of its container in place of the address,
// which is not the same tomorrow.
func shownServer(s config.DiscoveredServer) string {
	scheme, rest, ok := strings.Cut(s.Address, "://")
	if !ok {
		rest, scheme = s.Address, ""
	} else {
		scheme += "://"
	}
	host, base, slash := strings.Cut(rest, "/")
	port := host[strings.LastIndex(host, ":")+1:]
	if slash {
		base = "/" + base
	}
	return scheme + s.Container + ":" + port + base
}

func (c *dockerCheck) printJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(c)
}

func (c *dockerCheck) print(w io.Writer, what string) {
	for _, o := range c.Objects {
		fmt.Fprintf(w, "%s %s of container %s", config.KindOf(o.Kind).Noun, o.Name, o.Container)
		switch {
		case !o.Used:
			fmt.Fprintln(w, ": ignored")
			continue
		case len(o.hosts) > 0:
			fmt.Fprintf(w, ": %s", strings.Join(o.hosts, ", "))
		}
		if len(o.Servers) == 0 {
			fmt.Fprintln(w, " -> no server (503)")
			continue
		}
		fmt.Fprintf(w, " -> %s\n", strings.Join(o.Servers, ", "))
	}
	for _, i := range c.Issues {
		fmt.Fprintf(w, "%s [%s]\n", i, i.Code)
	}
	if len(c.Objects)+len(c.Issues) == 0 {
		fmt.Fprintf(w, "%s: no headgate labels\n", what)
	}
	if c.alone {
		fmt.Fprintln(w, "note: no configuration found, so names of ports, ACME entries and policies were not checked")
	}
}
