package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"headgate/internal/admin"
	"headgate/internal/control"
	"headgate/internal/pair"
	"headgate/internal/ports/listen"
	"headgate/internal/upgrade"
)

// The names of descriptors and parts of the state that belong to no port.
const (
	adminFile    = "admin/" // followed by the address
	socketFile   = "admin.sock"
	partInstance = "instance"
	partPair     = "pair" // of a machine of a pair: pair.Handed
)

// reportEvery is how often a replaced process reports the number of its connections to the
// new one.
const reportEvery = time.Second

// forceWait is how long the process before may take to end when it is stopped.
const forceWait = 5 * time.Second

// replacer replaces this process with one that runs the binary now on disk. Its methods may
// be called by several goroutines at once.
type replacer struct {
	// constant
	log       *slog.Logger
	program   string // the absolute path of the binary, as it was at the start
	notify    notifier
	control   *control.Control
	admin     *admin.Server
	inherited *upgrade.Inheritance // of this process, nil for none
	instance  string
	pair      *pair.Store                             // nil for a machine of no pair
	open      func(f *os.File) (*admin.Socket, error) // serves the admin socket again
	left      chan struct{}                           // closed when this process has to end, as it was replaced

	mu struct {
		sync.Mutex
		running bool // an upgrade is being made, or was
		cancel  context.CancelFunc
		done    chan struct{} // closed when the upgrade has succeeded or failed
		hurry   chan struct{} // closed when a replaced process has to end at once
		hurried bool
		socket  *admin.Socket
		// kept are the duplicates with which the admin listener and the admin socket are
		// served again if the new process ends.
		listener, socketFile *os.File
		handover             *upgrade.Handover
		fullMemory           func() // reverts halveMemory, after Release
	}
}

// newReplacer returns what replaces this process.
func newReplacer(o serverOptions, c *control.Control, listener *admin.Server, options admin.Options, p *pair.Store) *replacer {
	program, err := os.Executable()
	if err != nil {
		o.log.Warn("the path of the binary is unknown; it cannot be upgraded", "error", err)
	}
	path := admin.SocketPath(o.state)
	return &replacer{
		log: o.log, program: program, notify: o.notify, control: c, admin: listener, inherited: o.inherited, instance: options.Instance.ID, pair: p, left: make(chan struct{}),
		open: func(f *os.File) (*admin.Socket, error) { return admin.InheritSocket(path, f, options) },
	}
}

// takeOver returns a function that notifies the previous process that this one serves; nil
// if there is none.
func takeOver(in *upgrade.Inheritance) func() error {
	if in == nil {
		return nil
	}
	return in.Serving
}

// closeSocket closes the admin socket.
func (r *replacer) closeSocket() {
	r.mu.Lock()
	s := r.mu.socket
	r.mu.Unlock()
	s.Close()
}

// Upgrade replaces this process. It returns when the new process serves, or when it is
// clear that it does not: then everything is as it was. force ends a process at once that
// this one has replaced and that still has connections.
func (r *replacer) Upgrade(force bool) (upgrade.Result, error) {
	if err := r.reserve(force); err != nil {
		return upgrade.Result{}, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.mu.Lock()
	r.mu.cancel, r.mu.done, r.mu.hurry = cancel, make(chan struct{}), make(chan struct{})
	done := r.mu.done
	r.mu.Unlock()
	old := upgrade.Old{
		Offer: upgrade.Offer{Version: thisBuild().Version, Generation: r.inherited.Generation(), PID: os.Getpid()}, Service: r, Log: r.log,
		Start:    func() (upgrade.Process, upgrade.Link, error) { return upgrade.Start(r.program) },
		Released: r.notify.replacedBy,
	}
	r.log.Info("upgrade started", "program", r.program)
	s, err := old.Replace(ctx)
	defer close(done)
	if err != nil {
		r.log.Error("upgrade failed; this process continues", "error", err)
		r.free()
		return upgrade.Result{}, err
	}
	r.log.Info("replaced by a new process; existing connections end in their own time", "pid", s.PID(), "version", s.Version, "took", s.Took.String(), "connections", r.control.Connections())
	go r.drain(s)
	return upgrade.Result{PID: s.PID(), Version: s.Version, From: thisBuild().Version, Generation: r.inherited.Generation() + 1, Took: s.Took.Seconds(), Connections: r.control.Connections()}, nil
}

// reserve makes the upgrade that follows the only one, or reports why none can be made now.
func (r *replacer) reserve(force bool) error {
	if err := r.possible(); err != nil {
		return err
	}
	r.mu.Lock()
	running := r.mu.running
	r.mu.running = true
	r.mu.Unlock()
	if running {
		return upgrade.Refuse("upgrade_running", "an upgrade is in progress", "wait until it has completed")
	}
	if err := r.endPrevious(force); err != nil {
		r.free()
		return err
	}
	return nil
}

// free lets another upgrade be made.
func (r *replacer) free() {
	r.mu.Lock()
	r.mu.running = false
	r.mu.Unlock()
}

// endPrevious reports an error while the process that this one has replaced still has
// connections. force closes them.
func (r *replacer) endPrevious(force bool) error {
	if force {
		if left := r.inherited.Stop(); left != nil {
			select {
			case <-left:
			case <-time.After(forceWait):
			}
		}
	}
	p, draining := r.inherited.Draining()
	if !draining {
		return nil
	}
	return upgrade.Refuse("upgrade_draining", fmt.Sprintf("the process before this one (PID %d, %s) still has %d connections", p.PID, p.Version, p.Connections),
		"wait until they have ended, or use --force to close them")
}

// Freeze is that of an upgrade.Service.
func (r *replacer) Freeze(context.Context) (*upgrade.Handover, error) {
	h, err := r.control.Freeze()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.handover = h
	h.State = append(h.State, upgrade.Part{Name: partInstance, Data: fmt.Appendf(nil, "%q", r.instance)})
	if r.pair != nil {
		data, err := json.Marshal(r.pair.HandOver())
		if err != nil {
			panic(err) // there is nothing in it that cannot be written
		}
		h.State = append(h.State, upgrade.Part{Name: partPair, Data: data})
	}
	at, f, err := r.admin.File()
	if err == nil && f != nil {
		r.mu.listener = f
		h.Files = append(h.Files, upgrade.File{Name: adminFile + at.String(), File: f})
	}
	if err == nil {
		if r.mu.socketFile, err = r.mu.socket.File(); err == nil && r.mu.socketFile != nil {
			h.Files = append(h.Files, upgrade.File{Name: socketFile, File: r.mu.socketFile})
		}
	}
	if err != nil {
		r.closeLocked(true)
		return nil, errors.Join(err, r.control.Thaw())
	}
	return h, nil
}

// closeLocked closes the duplicates that the new process has received; all includes those
// of the admin listener and socket.
func (r *replacer) closeLocked(all bool) {
	for _, f := range r.mu.handover.Files {
		if all || f.File != r.mu.listener && f.File != r.mu.socketFile {
			f.Close()
		}
	}
	if all {
		r.mu.listener, r.mu.socketFile = nil, nil
	}
	r.mu.handover = &upgrade.Handover{}
}

// Release is that of an upgrade.Service.
func (r *replacer) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.control.Leave()
	r.admin.Leave()
	r.mu.socket.Leave()
	r.closeLocked(false) // the lock among them
	r.mu.fullMemory = halveMemory()
}

// Thaw is that of an upgrade.Service.
func (r *replacer) Thaw() error {
	released := r.control.Replaced()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !released {
		r.closeLocked(true)
		return r.control.Thaw()
	}
	if err := r.control.Thaw(); err != nil {
		return err
	}
	r.mu.fullMemory()
	r.mu.running = false // before the admin socket is open, by which another upgrade can be requested
	var err error
	if r.mu.listener != nil {
		err = r.admin.Rejoin(r.mu.listener)
	}
	if r.mu.socketFile != nil {
		s, serr := r.open(r.mu.socketFile)
		if err = errors.Join(err, serr); serr == nil {
			r.mu.socket = s
		}
	}
	r.mu.listener, r.mu.socketFile = nil, nil
	if err != nil {
		r.log.Error("the admin listener is not open", "error", err)
	}
	return nil
}

// drain waits until the connections of this process have ended, and ends it. If the new
// process ends before, this one serves again, unless another has been started.
func (r *replacer) drain(s *upgrade.Successor) {
	stopped := make(chan struct{})
	go func() {
		if s.Stopped() {
			close(stopped)
		}
	}()
	r.mu.Lock()
	hurry := r.mu.hurry
	r.mu.Unlock()
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	late := time.NewTimer(r.control.UpgradeDrain())
	defer late.Stop()
	for ended := s.Ended(); ; {
		n := r.control.Connections()
		r.sendLate(s, false)
		if n == 0 {
			break
		}
		_ = s.Report(n) // it may just end
		select {
		case <-ticker.C:
			continue
		case <-ended:
			if r.takeBack(s) {
				return
			}
			ended = nil
			continue
		case <-late.C:
		case <-stopped:
		case <-hurry:
		}
		break
	}
	r.mu.Lock()
	socket := r.mu.socket
	r.mu.Unlock()
	socket.Wait() // the caller of the upgrade gets its response
	r.admin.Wait()
	cut := r.control.EndReplaced(func() { r.sendLate(s, true) })
	r.log.Info("the replaced process ends", "pid", os.Getpid(), "connections_closed", cut)
	s.Link.Close()
	close(r.left)
}

// sendLate sends what the new process cannot see, as it happens here.
func (r *replacer) sendLate(s *upgrade.Successor, last bool) {
	for _, p := range r.control.Late(last) {
		if s.Send(p) != nil {
			return // it has just ended
		}
	}
}

// takeBack serves again after the new process has ended. It reports false if another
// process has the state directory by now.
func (r *replacer) takeBack(s *upgrade.Successor) bool {
	r.log.Error("the new process has ended", "pid", s.PID(), "error", s.Err())
	if err := r.Thaw(); err != nil {
		r.log.Warn("another process serves by now; this one ends with its connections", "error", err)
		return false
	}
	s.Link.Close()
	r.log.Warn("the new process has ended, this one serves again", "version", thisBuild().Version)
	return true
}

// stop ends the upgrade that is being made, if there is one. It reports whether this
// process was replaced: it ends at once then.
func (r *replacer) stop() (replaced bool) {
	r.inherited.Stop()
	r.mu.Lock()
	cancel, done := r.mu.cancel, r.mu.done
	r.mu.Unlock()
	if cancel == nil {
		return false
	}
	cancel()
	<-done
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.control.Replaced() {
		return false
	}
	if !r.mu.hurried {
		r.mu.hurried = true
		close(r.mu.hurry)
	}
	return true
}

// inheritListener returns what opens the address of the admin listener: it takes the
// inherited socket, or that of the service manager, if there is one.
func inheritListener(in *upgrade.Inheritance, of *activated) func(address netip.AddrPort, now net.Listener) (net.Listener, error) {
	return func(address netip.AddrPort, now net.Listener) (net.Listener, error) {
		f := in.TakeFile(adminFile + address.String())
		if f == nil {
			f = of.TakeSocket(adminSocket, "tcp/"+address.String())
		}
		if f == nil {
			return listen.Listener(address, now)
		}
		defer f.Close()
		return net.FileListener(f)
	}
}

// inherit receives what the running process hands over.
func inherit() (*upgrade.Inheritance, error) {
	if os.Getenv("WATCHDOG_USEC") != "" {
		os.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	}
	link, err := upgrade.Connect()
	if err != nil {
		return nil, err
	}
	return upgrade.Inherit(link, thisBuild().Version)
}
