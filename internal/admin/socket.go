package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"headgate/internal/admin/api"
)

// SocketName is the file of the admin socket in a state directory.
const SocketName = "admin.sock"

// SocketPath returns the path of the admin socket of a state directory.
func SocketPath(state string) string { return filepath.Join(state, SocketName) }

// maxSocketPath is the longest path of a socket that every system takes, in bytes: the
// least sun_path has 104 with the end.
const maxSocketPath = 103

// dialTimeout is how long a process may take to accept a connection by the socket.
const dialTimeout = 5 * time.Second

// Socket is the admin socket: the same pages and API as at the admin address, for programs
// on this machine. A peer that is root or the user of this process is an admin without
// signing in; the kernel reports the peer's user.
type Socket struct {
	path     string
	file     os.FileInfo
	listener *net.UnixListener
	accepts  net.Listener // listener with what bounds it
	server   *http.Server
	done     chan struct{}
	leaving  sync.WaitGroup // see Leave
}

// OpenSocket listens on a path, with access for the user of this process only, and serves
// what New serves with the same options. It replaces a socket at which no process answers,
// and nothing else. The error is errors.ErrUnsupported on systems that do not identify the
// peers of a socket. Close it.
func OpenSocket(path string, o Options) (*Socket, error) {
	if !api.KnowsPeers {
		return nil, errors.ErrUnsupported
	}
	l, err := listenSocket(path)
	if err != nil {
		return nil, fmt.Errorf("open admin socket %s: %w", path, err)
	}
	return serveSocket(path, l, o), nil
}

// serveSocket serves a socket that is at a path.
func serveSocket(path string, l *net.UnixListener, o Options) *Socket {
	s := &Socket{path: path, listener: l, accepts: gated(&bounded{l, make(chan struct{}, connections)}, o.Begin), done: make(chan struct{})}
	s.file, _ = os.Lstat(path) // without it, Close does not remove the file
	identify := o.Peers
	if identify == nil {
		identify = api.OthersContext
	}
	s.server = &http.Server{
		Handler: localOnly(pages(o), o.API),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return identify(ctx, c.(*peer).UnixConn)
		},
		ReadHeaderTimeout: headTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headSize,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	go func() {
		defer close(s.done)
		if err := s.server.Serve(s.accepts); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			o.Log.Error("admin socket ended", "path", path, "error", err)
		}
	}()
	return s
}

// Close stops serving and removes the socket. It gives requests under way a short time
// to end. To close nil does nothing.
func (s *Socket) Close() {
	if s == nil {
		return
	}
	if now, err := os.Lstat(s.path); err == nil && s.file != nil && os.SameFile(now, s.file) {
		os.Remove(s.path)
	}
	s.end()
}

// end stops serving, and gives requests under way a short time.
func (s *Socket) end() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if s.server.Shutdown(ctx) != nil {
		s.server.Close()
	}
	<-s.done
}

// localOnly refuses peers that are neither root nor our own user, except at the API,
// where they can sign in as everywhere.
func localOnly(all http.Handler, management *api.API) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		switch {
		case management != nil && strings.HasPrefix(rq.URL.Path, "/api/"):
			management.ServeHTTP(w, rq)
		case !api.IsLocal(rq.Context()):
			text(w, http.StatusForbidden, "the admin socket is for root and the user that headgate runs as\n")
		default:
			guard(all, nil).ServeHTTP(w, rq)
		}
	})
}

// listenSocket opens a socket at a path. It is made in a folder that only we may enter,
// and put in its place when its mode is right.
func listenSocket(path string) (*net.UnixListener, error) {
	if conn, err := dialSocket(context.Background(), path); err == nil {
		conn.Close()
		return nil, errors.New("another process answers there")
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket == 0 {
		return nil, errors.New("something else has this name; remove it")
	}
	const made = ".admin-socket-"
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), made+"*")) // of a process that was killed
	for _, name := range left {
		os.RemoveAll(name)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), made)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	fresh := filepath.Join(dir, "s")
	var l *net.UnixListener
	err = shortened(fresh, func(short string) (err error) {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // it is renamed below
	if err = os.Chmod(fresh, 0o600); err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// bounded is a listener with a maximum of open connections. Unlike that of netutil, its
// connections give access to the socket, for the peer's identity.
type bounded struct {
	*net.UnixListener
	open chan struct{}
}

// Accept returns the next connection. Where there is no place it is closed already.
func (b *bounded) Accept() (net.Conn, error) {
	conn, err := b.AcceptUnix()
	if err != nil {
		return nil, err
	}
	select {
	case b.open <- struct{}{}:
		return &peer{UnixConn: conn, leave: sync.OnceFunc(func() { <-b.open })}, nil
	default:
		conn.Close() // the server sees its end
		return &peer{UnixConn: conn, leave: func() {}}, nil
	}
}

// peer is a connection that has a place.
type peer struct {
	*net.UnixConn
	leave func()
}

// Close gives the place back.
func (p *peer) Close() error {
	p.leave()
	return p.UnixConn.Close()
}

// DialSocket connects to the admin socket at a path, if the kernel reports that the
// listening process belongs to a trusted user.
func DialSocket(ctx context.Context, path string, trusted func(uid int) bool) (net.Conn, error) {
	conn, err := dialSocket(ctx, path)
	if err != nil {
		return nil, err
	}
	uid, err := api.UserOf(conn)
	if err == nil && !trusted(uid) {
		err = fmt.Errorf("the socket %s is of a process of the user with number %d", path, uid)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func dialSocket(ctx context.Context, path string) (conn net.Conn, err error) {
	err = shortened(path, func(short string) (err error) {
		conn, err = (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "unix", short)
		return err
	})
	return conn, err
}

// shortened calls a function with a path to the same file that is short enough for a
// socket. A path that is too long is replaced by one through a symbolic link to its
// directory, in a private temporary directory that is removed afterwards.
func shortened(path string, do func(short string) error) error {
	if len(path) <= maxSocketPath {
		return do(path)
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "headgate-")
	if err != nil {
		return fmt.Errorf("the path is longer than %d bytes, and no link to it can be made: %w", maxSocketPath, err)
	}
	defer os.RemoveAll(dir)
	link := filepath.Join(dir, "d")
	if err := os.Symlink(filepath.Dir(full), link); err != nil {
		return fmt.Errorf("the path is longer than %d bytes, and no link to it can be made: %w", maxSocketPath, err)
	}
	return do(filepath.Join(link, filepath.Base(full)))
}
