package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"headgate/internal/admin"
	"headgate/internal/admin/api"
	"headgate/internal/config"
	"headgate/internal/source/disk"
)

// tokenVariable holds the token of a command that goes to an address.
const tokenVariable = "HEADGATE_TOKEN"

// reach finds the headgate that a command is for.
type reach struct {
	cmd                               *cobra.Command
	config, state, admin, fingerprint *string
}

// reachHelp tells in the help of a command how it finds its headgate.
const reachHelp = `

It asks the headgate that runs on this machine by its admin socket, which needs no
sign-in for root and the user that headgate runs as. --admin names another one, by the
address or URL of its admin listener; the token in $HEADGATE_TOKEN says who asks. A
self-signed certificate of another machine is believed by its --fingerprint only.`

// addReach adds the flags that say which headgate a command is for.
func addReach(cmd *cobra.Command) *reach {
	r := &reach{cmd: cmd, config: addConfig(cmd)}
	r.state = addState(cmd)
	r.admin = cmd.Flags().String("admin", "", "`ADDRESS` or URL of the admin listener; without it the admin socket in the state directory")
	r.fingerprint = cmd.Flags().String("fingerprint", "", "`SHA-256` of the certificate at that address, as headgate logs it")
	return r
}

// addState adds the flag --state to a command.
func addState(cmd *cobra.Command) *string {
	state := cmd.Flags().String("state", "", "`DIR` where state is kept; without it /var/lib/headgate, or $XDG_STATE_HOME/headgate")
	_ = cmd.MarkFlagDirname("state") // the flag exists
	return state
}

// errNobody says that no headgate runs where a command looked for it.
var errNobody = errors.New("no headgate answers")

// open returns the headgate that the flags are about. The error is errNobody when
// none runs. Close it.
func (r *reach) open(ctx context.Context) (*remote, error) {
	if *r.admin != "" {
		return r.openAddress(ctx, *r.admin, "")
	}
	dir, err := stateDir(*r.state)
	if err != nil {
		return nil, err
	}
	path := admin.SocketPath(dir)
	found, err := r.openSocket(ctx, path)
	var other *otherHeadgate
	switch {
	case err == nil:
		return found, nil
	case errors.As(err, &other) && r.cmd.Flags().Changed("state"):
		return nil, err
	case errors.Is(err, fs.ErrPermission):
		err = fmt.Errorf("%w; run the command as root or as the user that headgate runs as, or give --admin and $%s", err, tokenVariable)
	}
	if r.cmd.Flags().Changed("state") {
		if !api.KnowsPeers {
			return nil, noSocket()
		}
		if isAbsent(err) {
			return nil, fmt.Errorf("%w at %s", errNobody, path)
		}
		return nil, err
	}
	address, config, failed := r.configured()
	if address == "" {
		if failed == nil {
			failed = fmt.Errorf("%w at %s, and the configuration switches the admin listener off", errNobody, path)
		}
		return nil, failed
	}
	to, err := r.openAddress(ctx, address, config)
	switch {
	case failed == nil:
		return to, err
	case err != nil:
		return nil, fmt.Errorf("%w; asked at %s all the same: %w; --admin says where to ask without a configuration", failed, address, err)
	case to.id == "":
		return nil, fmt.Errorf("%w; who listens at %s does not tell which configuration it serves; --admin says where to ask without a configuration", failed, address)
	}
	return to, nil
}

// noSocket is the error of a command that asks for a state directory where no system has
// an admin socket.
func noSocket() error {
	return fmt.Errorf("%w by an admin socket, which this system does not have; name the admin listener with --admin, and put a token into $%s", errNobody, tokenVariable)
}

// isAbsent reports whether nobody listens at a socket or address.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// configured returns the address of the admin listener as the configuration has it, ""
// if that switches it off, and the configuration's path, "" if there is none. With an
// error about what the configuration says the address is as much as can be read of it,
// else where it is by default.
func (r *reach) configured() (address, path string, err error) {
	if path, err = configPath(*r.config, *r.state); err != nil {
		return adminAddress, "", nil // where it is by default
	}
	docs, err := disk.Open(path, nil).Read()
	if err != nil {
		return "", "", err
	}
	cfg, _, problems := config.LoadDocuments(docs, nil)
	switch {
	case len(problems) > 0:
		if at, ok := config.AdminAddress(docs); ok {
			return reachable(at), path, problems[0]
		}
		return adminAddress, path, problems[0]
	case !cfg.Admin.Address.IsValid():
		return "", path, nil
	}
	return reachable(cfg.Admin.Address), path, nil
}

// reachable returns where a listener is asked from this machine.
func reachable(at netip.AddrPort) string {
	if at.Addr().IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", at.Port())
	}
	return at.String()
}

// openSocket returns the headgate that listens at a socket.
func (r *reach) openSocket(ctx context.Context, path string) (*remote, error) {
	to := newRemote("http://headgate", path, func(ctx context.Context, _, _ string) (net.Conn, error) { return admin.DialSocket(ctx, path) })
	i, status, err := to.instance(ctx)
	if err == nil && i == nil {
		err = fmt.Errorf("ask %s which headgate it is: status %d", path, status)
	}
	if err == nil {
		err = r.check(i, path, "")
	}
	if err != nil {
		return nil, err
	}
	return to, nil
}

// openAddress returns the headgate at an address, which should serve a configuration if
// one is named. Without a token it goes on by the socket that the headgate there names,
// if that is of the same headgate.
func (r *reach) openAddress(ctx context.Context, address, config string) (*remote, error) {
	base, loopback, err := adminURL(address)
	if err != nil {
		return nil, err
	}
	token := os.Getenv(tokenVariable)
	if token != "" && !loopback && strings.HasPrefix(base, "http:") {
		return nil, usage("a token may not go to %s in the clear; name the listener by an https:// URL", address)
	}
	believe, err := believer(*r.fingerprint, base, loopback)
	if err != nil {
		return nil, err
	}
	to := newRemote(base, address, (&net.Dialer{}).DialContext)
	to.believe(believe)
	i, status, err := to.instance(ctx)
	if err == nil && status == http.StatusBadRequest && strings.HasPrefix(base, "http:") && loopback {
		to.base = "https:" + strings.TrimPrefix(base, "http:") // it speaks TLS here too
		i, _, err = to.instance(ctx)
	}
	to.token = token
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("%w: %w; start headgate, or name its admin listener with --admin", errNobody, err)
	}
	if err != nil || i == nil {
		return to, err // one that others can reach does not tell
	}
	if err := r.check(i, address, config); err != nil {
		return nil, err
	}
	if i.Socket == "" || token != "" {
		return to, nil
	}
	if local, err := r.openSocket(ctx, i.Socket); err == nil && local.id == i.ID {
		return local, nil
	}
	return to, nil
}

// adminURL returns the URL of an admin listener that is named by IP:PORT or a URL, and
// whether it is on this machine. On addresses of others it speaks TLS.
func adminURL(named string) (base string, loopback bool, err error) {
	if at, err := netip.ParseAddrPort(named); err == nil {
		switch {
		case at.Addr().Unmap().IsLoopback():
			return "http://" + named, true, nil
		case at.Addr().IsUnspecified():
			return fmt.Sprintf("http://127.0.0.1:%d", at.Port()), true, nil
		}
		return "https://" + named, false, nil
	}
	u, err := url.Parse(named)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return "", false, usage("invalid address %q, want one like 127.0.0.1:9080 or https://headgate.example.com:9080", named)
	}
	at, err := netip.ParseAddr(u.Hostname())
	return u.Scheme + "://" + u.Host, u.Hostname() == "localhost" || err == nil && at.Unmap().IsLoopback(), nil
}

// otherHeadgate is the error of a headgate that is not the one a command is for.
type otherHeadgate struct{ what string }

// Error tells the difference.
func (o *otherHeadgate) Error() string { return o.what }

// check compares what a headgate says of itself with what the flags name.
func (r *reach) check(i *admin.Instance, place, config string) error {
	if r.cmd.Flags().Changed("config") {
		config = *r.config
	}
	if config != "" && !samePath(config, i.Config) {
		return &otherHeadgate{fmt.Sprintf("the headgate at %s serves %s, not %s; nothing was asked of it", place, i.Config, config)}
	}
	if r.cmd.Flags().Changed("state") && !samePath(*r.state, i.State) {
		return &otherHeadgate{fmt.Sprintf("the headgate at %s has its state in %s, not %s; nothing was asked of it", place, i.State, *r.state)}
	}
	return nil
}

// samePath reports whether two paths lead to one file or folder.
func samePath(a, b string) bool {
	one, err1 := os.Stat(a)
	two, err2 := os.Stat(b)
	if err1 == nil && err2 == nil {
		return os.SameFile(one, two)
	}
	full, err := filepath.Abs(a)
	return err == nil && full == b
}

// instance asks which headgate this is; nil if it does not tell.
func (to *remote) instance(ctx context.Context) (*admin.Instance, int, error) {
	rs, err := to.send(ctx, http.MethodGet, admin.InstancePath, nil, nil)
	if err != nil {
		return nil, 0, err
	}
	defer rs.Body.Close()
	if rs.StatusCode != http.StatusOK {
		return nil, rs.StatusCode, nil
	}
	i := &admin.Instance{}
	if err := json.NewDecoder(http.MaxBytesReader(nil, rs.Body, 64<<10)).Decode(i); err != nil {
		return nil, 0, fmt.Errorf("ask %s which headgate it is: %w", to.place, err)
	}
	to.id = i.ID
	return i, rs.StatusCode, nil
}
