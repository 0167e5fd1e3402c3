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
	"headgate/internal/config/disk"
)

// tokenVariable holds the token of a command that goes to an address.
const tokenVariable = "HEADGATE_TOKEN"

// reach finds the headgate that a command is for.
type reach struct {
	cmd                               *cobra.Command
	config, state, admin, fingerprint *string
}

// reachHelp describes in the help of a command how it finds headgate.
const reachHelp = `

The command connects to the headgate on this machine through its admin socket; root and the
user that headgate runs as need no sign-in. To connect to another headgate, set --admin to
the address or URL of its admin listener, and $HEADGATE_TOKEN to a token, which is sent only
to that listener. If its certificate is self-signed, pass its --fingerprint.`

// addReach adds the flags that select the headgate of a command.
func addReach(cmd *cobra.Command) *reach {
	r := &reach{cmd: cmd, config: addConfig(cmd)}
	r.state = addState(cmd)
	r.addAddress()
	return r
}

// addAddress adds the flags of a headgate elsewhere.
func (r *reach) addAddress() {
	r.admin = r.cmd.Flags().String("admin", "", "`ADDRESS` or URL of the admin listener; by default the admin socket in the state directory")
	r.fingerprint = r.cmd.Flags().String("fingerprint", "", "`SHA-256` fingerprint of the public key of the admin listener, as headgate status prints it, or of its certificate")
}

// addState adds the flag --state to a command.
func addState(cmd *cobra.Command) *string {
	state := cmd.Flags().String("state", "", "state `DIR`; by default /var/lib/headgate or $XDG_STATE_HOME/headgate")
	_ = cmd.MarkFlagDirname("state") // the flag exists
	return state
}

// errNotRunning means that no headgate runs where a command looked for it.
var errNotRunning = errors.New("no headgate is running")

// open connects to the headgate that the flags select. The error is errNotRunning if none
// runs. Close it.
func (r *reach) open(ctx context.Context) (*remote, error) {
	if *r.admin != "" {
		return r.openAddress(ctx, *r.admin, "", os.Getenv(tokenVariable))
	}
	dir, err := stateDir(*r.state)
	if err != nil {
		return nil, err
	}
	path := admin.SocketPath(dir)
	found, err := r.openSocket(ctx, path, anyUser)
	var other *otherHeadgate
	switch {
	case err == nil:
		return found, nil
	case errors.As(err, &other) && r.cmd.Flags().Changed("state"):
		return nil, err
	}
	err = helped(err)
	if r.cmd.Flags().Changed("state") {
		if !api.KnowsPeers {
			return nil, noSocket()
		}
		if isAbsent(err) {
			return nil, fmt.Errorf("%w at %s", errNotRunning, path)
		}
		return nil, err
	}
	address, config, failed := r.configured()
	if address == "" {
		if failed == nil {
			failed = fmt.Errorf("%w at %s, and the configuration disables the admin listener", errNotRunning, path)
		}
		return nil, failed
	}
	to, err := r.openListening(ctx, address, config)
	switch {
	case failed == nil:
		return to, err
	case err != nil:
		return nil, fmt.Errorf("%w; tried %s anyway: %w; use --admin to specify the admin listener without a configuration", failed, address, err)
	}
	return to, nil
}

// noSocket returns the error of a command with a state directory on systems without admin
// sockets.
func noSocket() error {
	return fmt.Errorf("%w with an admin socket, which this system does not support; specify the admin listener with --admin, and a token in $%s", errNotRunning, tokenVariable)
}

// helped adds to an error of a socket that we may not use what to do.
func helped(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w; run the command as root or as the user that headgate runs as, or use --admin and $%s", err, tokenVariable)
	}
	return err
}

// isAbsent reports whether an error means that no process listens at a socket or address.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// configured returns the address of the admin listener in the configuration, "" if it is
// disabled, and the configuration's path, "" if there is none. If the configuration has
// problems, it returns an error with the address as far as it can be read, or the default
// address.
func (r *reach) configured() (address, path string, err error) {
	if path, err = configPath(*r.config, *r.state); err != nil {
		return adminAddress, "", nil // the default
	}
	docs, err := disk.Open(path, nil).Read(nil)
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

// reachable returns the address to connect to a listener on this machine.
func reachable(at netip.AddrPort) string {
	if at.Addr().IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", at.Port())
	}
	return at.String()
}

// openSocket returns the headgate that listens at a socket, if the process there is of a
// user who is trusted.
func (r *reach) openSocket(ctx context.Context, path string, trusted func(uid int) bool) (*remote, error) {
	to, err := newRemote("http://headgate", path, func(ctx context.Context, _, _ string) (net.Conn, error) { return admin.DialSocket(ctx, path, trusted) })
	if err != nil {
		return nil, err
	}
	i, status, err := to.instance(ctx)
	if err == nil && i == nil {
		err = fmt.Errorf("identify the headgate at %s: status %d", path, status)
	}
	if err == nil {
		err = r.check(i, path, "")
	}
	if err != nil {
		to.close()
		return nil, err
	}
	return to, nil
}

// anyUser trusts every process at a socket: the operator specified its directory, to which
// only headgate can write.
func anyUser(int) bool { return true }

// ownUser trusts root and our own user.
func ownUser(uid int) bool { return uid == 0 || uid == os.Geteuid() }

// openAddress returns the headgate at an address, which should serve a configuration if
// one is named. Without a token it goes on by the socket that the headgate there names,
// if that is of the same headgate.
func (r *reach) openAddress(ctx context.Context, address, config, token string) (*remote, error) {
	to, i, loopback, err := r.askAddress(ctx, address, config, token)
	if err != nil {
		return nil, err
	}
	options := to.options
	options.Token = token
	if err := to.set(options); err != nil {
		return nil, err
	}
	if i == nil || i.Socket == "" || token != "" || !loopback {
		return to, nil // a listener that other machines reach does not identify itself
	}
	if local, err := r.openSocket(ctx, i.Socket, anyUser); err == nil && local.id == i.ID {
		to.close()
		return local, nil
	}
	return to, nil
}

// unproven is the error of a listener that was not specified by the operator and could
// belong to any user.
type unproven struct {
	place string
	why   error
}

// Error describes what is missing, and how to specify the headgate.
func (u *unproven) Error() string {
	return fmt.Sprintf("cannot verify that headgate is listening at %s; no request was sent: %v; specify the state directory with --state, or the listener with --admin and $%s", u.place, u.why, tokenVariable)
}

// Unwrap returns what is missing.
func (u *unproven) Unwrap() error { return u.why }

// openListening returns the headgate whose admin listener should be at an address that
// the command line does not name. While headgate does not run, every user of the machine
// can listen there. So the listener gets no token, and is only asked where the admin
// socket is; the process there has to be of root or of our own user. The error is an
// *unproven where it is not.
func (r *reach) openListening(ctx context.Context, address, config string) (*remote, error) {
	to, i, _, err := r.askAddress(ctx, address, config, "")
	if err != nil {
		return nil, err
	}
	to.close()
	if i == nil || i.Socket == "" {
		return nil, &unproven{address, errors.New("it does not report its admin socket")}
	}
	local, err := r.openSocket(ctx, i.Socket, ownUser)
	if err == nil && local.id != i.ID {
		local.close()
		err = errors.New("another process answers at the admin socket that it reports")
	}
	if err != nil {
		return nil, &unproven{address, helped(err)}
	}
	return local, nil
}

// askAddress queries an address for the instance, which is nil if it does not identify
// itself. If a token will be sent, it rejects addresses at which others could read it.
func (r *reach) askAddress(ctx context.Context, address, config, token string) (to *remote, i *admin.Instance, loopback bool, err error) {
	base, loopback, err := adminURL(address, *r.fingerprint != "")
	if err != nil {
		return nil, nil, false, err
	}
	if token != "" && !loopback && strings.HasPrefix(base, "http:") {
		return nil, nil, false, usage("refusing to send a token to %s without encryption; use an https:// URL", address)
	}
	trust, err := verifier(*r.fingerprint, base, loopback)
	if err != nil {
		return nil, nil, false, err
	}
	to, err = newRemote(base, address, (&net.Dialer{}).DialContext)
	if err != nil {
		return nil, nil, false, err
	}
	to.transport.TLSClientConfig = trust
	i, status, err := to.instance(ctx)
	if err == nil && status == http.StatusBadRequest && strings.HasPrefix(base, "http:") && loopback {
		options := to.options
		options.URL = "https:" + strings.TrimPrefix(base, "http:") // it speaks TLS here too
		if err = to.set(options); err == nil {
			i, _, err = to.instance(ctx)
		}
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		err = fmt.Errorf("%w: %w; start headgate, or specify its admin listener with --admin", errNotRunning, err)
	}
	if err == nil && i != nil {
		err = r.check(i, address, config)
	}
	if err != nil {
		to.close()
		return nil, nil, false, err
	}
	return to, i, loopback, nil
}

// adminURL returns the URL of an admin listener for an IP:PORT or URL, and whether it is on
// this machine. It uses TLS for addresses of other machines, and on this machine if it must
// present a certificate.
func adminURL(named string, certified bool) (base string, loopback bool, err error) {
	if at, err := netip.ParseAddrPort(named); err == nil {
		scheme := "http://"
		loopback = at.Addr().Unmap().IsLoopback() || at.Addr().IsUnspecified()
		if certified || !loopback {
			scheme = "https://"
		}
		return scheme + reachable(at), loopback, nil
	}
	u, err := url.Parse(named)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return "", false, usage("invalid address %q: expected an address like 127.0.0.1:9080 or https://headgate.example.com:9080", named)
	}
	if certified && u.Scheme == "http" {
		return "", false, usage("%s does not use TLS, so it has no certificate fingerprint; use an https:// URL, or omit --fingerprint", named)
	}
	at, err := netip.ParseAddr(u.Hostname())
	return u.Scheme + "://" + u.Host, u.Hostname() == "localhost" || err == nil && at.Unmap().IsLoopback(), nil
}

// otherHeadgate is the error of a headgate that is not the one a command is for.
type otherHeadgate struct{ what string }

// Error describes the difference.
func (o *otherHeadgate) Error() string { return o.what }

// check compares the identity of a headgate with the flags.
func (r *reach) check(i *admin.Instance, place, config string) error {
	if r.cmd.Flags().Changed("config") {
		config = *r.config
	}
	if config != "" && !samePath(config, i.Config) {
		return &otherHeadgate{fmt.Sprintf("the headgate at %s uses the configuration %s, not %s; no request was sent", place, i.Config, config)}
	}
	if r.cmd.Flags().Changed("state") && !samePath(*r.state, i.State) {
		return &otherHeadgate{fmt.Sprintf("the headgate at %s uses the state directory %s, not %s; no request was sent", place, i.State, *r.state)}
	}
	return nil
}

// samePath reports whether two paths are the same file or directory.
func samePath(a, b string) bool {
	one, err1 := os.Stat(a)
	two, err2 := os.Stat(b)
	if err1 == nil && err2 == nil {
		return os.SameFile(one, two)
	}
	full, err := filepath.Abs(a)
	return err == nil && full == b
}

// instance requests the identity of a headgate; nil if it does not identify itself.
func (to *remote) instance(ctx context.Context) (*admin.Instance, int, error) {
	ctx, cancel := context.WithTimeout(ctx, headTimeout)
	defer cancel()
	rs, err := to.Send(ctx, http.MethodGet, admin.InstancePath, nil, nil)
	if err != nil {
		return nil, 0, err
	}
	defer rs.Body.Close()
	if rs.StatusCode != http.StatusOK {
		return nil, rs.StatusCode, nil
	}
	i := &admin.Instance{}
	if err := json.NewDecoder(http.MaxBytesReader(nil, rs.Body, 64<<10)).Decode(i); err != nil {
		return nil, 0, fmt.Errorf("identify the headgate at %s: %w", to.Name(), err)
	}
	to.id = i.ID
	return i, rs.StatusCode, nil
}
