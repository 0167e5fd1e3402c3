package pair

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"headgate/internal/store"
)

// streams are what a follower copies besides entries.
var streams = []string{store.StreamAudit, store.StreamEvents}

// Config returns the TLS of a connection for the group; nil if it is for something else. It
// is for the admin listener.
func (s *Store) Config(client *tls.ClientHelloInfo) *tls.Config {
	if client.ServerName != s.id.serverName() {
		return nil
	}
	return s.server
}

// Serves reports whether a connection was made with the TLS of Config.
func (s *Store) Serves(state *tls.ConnectionState) bool {
	return state != nil && state.ServerName == s.id.serverName()
}

// ServeHTTP answers the other machine, on connections that Serves reports.
func (s *Store) ServeHTTP(w http.ResponseWriter, rq *http.Request) {
	err := s.serve(w, rq)
	if err == nil {
		return
	}
	f, status := failureOf(err)
	if errors.Is(err, ErrToken) || errors.Is(err, ErrRemoved) {
		s.log.Warn("a machine was rejected", "address", rq.RemoteAddr, "path", rq.URL.Path, "error", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	writeJSON(w, f)
}

func writeJSON(w io.Writer, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // types of this package
	}
	_, _ = w.Write(append(data, '\n')) // the other machine notices
}

// serve answers one request. Everything but joining needs the credential of a member.
func (s *Store) serve(w http.ResponseWriter, rq *http.Request) error {
	if !s.Serves(rq.TLS) || rq.Method != http.MethodPost {
		return errors.New("unknown request")
	}
	if s.isSuspended() {
		w.Header().Set("Connection", "close")
		return errReplaced
	}
	rq.Body = http.MaxBytesReader(w, rq.Body, maxRequest)
	if rq.URL.Path == pathJoin {
		return answer(w, rq, func(ctx context.Context, in *joinRequest) (*joinResponse, error) {
			return s.admit(ctx, in, rq.RemoteAddr)
		})
	}
	name, announced, err := s.caller(rq)
	if err != nil {
		return err
	}
	switch rq.URL.Path {
	case pathHello:
		return answer(w, rq, func(ctx context.Context, in *hello) (*hello, error) {
			if announced && s.Role() == Leader {
				if err := s.noteCertificate(ctx, rq.TLS.PeerCertificates[0], in.Address, rq.RemoteAddr); err != nil {
					return nil, err
				}
			}
			return s.greet(ctx, name, in)
		})
	case pathYield:
		return answer(w, rq, func(ctx context.Context, _ *struct{}) (*store.Position, error) { return s.handOver(ctx) })
	}
	if s.Role() != Leader {
		return errNotLeader
	}
	switch rq.URL.Path {
	case pathWatch:
		return s.serveWatch(w, rq, name)
	case pathAck:
		return answer(w, rq, func(_ context.Context, in *store.Position) (*struct{}, error) {
			s.followers.ack(name, in.Revision)
			return &struct{}{}, nil
		})
	case pathList:
		return answer(w, rq, func(ctx context.Context, in *listRequest) ([]store.Meta, error) {
			return s.o.Files.List(ctx, "", in.After, in.N)
		})
	case pathFetch:
		return answer(w, rq, func(ctx context.Context, in *[]string) ([]store.Entry, error) {
			all, err := s.fetch(ctx, *in)
			if err == nil {
				_, _, err = s.caller(rq) // it may have been revoked before all were read
			}
			return all, err
		})
	case pathCommit:
		return answer(w, rq, func(ctx context.Context, in *store.Change) (store.Revision, error) {
			if !relayed(name, in) {
				return 0, s.refusal(nil)
			}
			return s.commitOwn(ctx, *in, true)
		})
	case pathMessage:
		return answer(w, rq, func(_ context.Context, in *store.Message) (*struct{}, error) {
			return &struct{}{}, s.acceptMessage(name, in)
		})
	case pathChallenge:
		return answer(w, rq, func(ctx context.Context, in *string) (string, error) { return s.ownChallenge(ctx, *in) })
	}
	return errors.New("unknown request: the machines run different versions of headgate")
}

// answer reads the body of a request and sends what do returns.
func answer[In, Out any](w http.ResponseWriter, rq *http.Request, do func(context.Context, *In) (Out, error)) error {
	in := new(In)
	if err := json.NewDecoder(rq.Body).Decode(in); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	ctx, stop := context.WithTimeout(rq.Context(), callTimeout+syncWait)
	defer stop()
	out, err := do(ctx, in)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	writeJSON(w, out)
	return nil
}

// caller returns the name of the member whose credential the connection has, and whether
// that is a new one that was announced. The name comes from the certificate, never from the
// request.
func (s *Store) caller(rq *http.Request) (name string, announced bool, err error) {
	if len(rq.TLS.VerifiedChains) == 0 {
		return "", false, fmt.Errorf("%w: there is none", ErrRemoved)
	}
	name, announced, err = s.recognize(rq.Context(), rq.TLS.PeerCertificates[0])
	if errors.Is(err, errStranger) {
		err = ErrRemoved
	}
	return name, announced, err
}

// member returns the member with a name, nil if there is none.
func (s *Store) member(ctx context.Context, name string) (*member, error) {
	if CheckName(name) != nil {
		return nil, nil
	}
	e, err := s.Get(ctx, store.PrefixGroupMember+name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	m := &member{Name: name}
	if err == nil {
		err = json.Unmarshal(e.Value, m)
	}
	return m, err
}

// listRequest is the arguments of List.
type listRequest struct {
	After string `json:"after"`
	N     int    `json:"n"`
}

// fetch returns entries that are there.
func (s *Store) fetch(ctx context.Context, keys []string) ([]store.Entry, error) {
	if len(keys) > store.MaxOperations {
		return nil, store.ErrTooLarge
	}
	return store.GetAll(ctx, s.o.Files, keys)
}

// outgoing is a stream to a follower.
type outgoing struct {
	s    *Store
	w    http.ResponseWriter
	rc   *http.ResponseController
	last map[string]store.Sequence
}

func (o *outgoing) send(f *frame) error {
	if err := o.rc.SetWriteDeadline(time.Now().Add(silence)); err != nil {
		return err
	}
	writeJSON(o.w, f)
	return o.rc.Flush()
}

// records sends what was appended to the streams since the last call. They come before the
// commit that they belong to, so a follower that has the commit has them.
func (o *outgoing) records(ctx context.Context) error {
	for _, name := range streams {
		for {
			page, err := o.s.o.Files.After(ctx, name, o.last[name])
			if err != nil || len(page) == 0 {
				if err != nil {
					return err
				}
				break
			}
			size, n := 0, 0
			for n < len(page) && (n == 0 || size+len(page[n].Data) < store.MaxChange) {
				size += len(page[n].Data)
				n++
			}
			if err := o.send(&frame{Records: page[:n]}); err != nil {
				return err
			}
			o.last[name] = page[n-1].Sequence
		}
	}
	return nil
}

// serveWatch streams commits to a follower until it leaves, its credential is revoked or
// this machine is not the leader any more.
func (s *Store) serveWatch(w http.ResponseWriter, rq *http.Request, name string) error {
	out, after, err := s.newOutgoing(w, rq.URL.Query())
	if err != nil {
		return err
	}
	if err := out.rc.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(rq.Context())
	defer stop()
	batches, ended := s.watchFiles(ctx, after)
	messages := s.outgoingMessages(ctx)
	turn := s.turn()
	defer s.followers.connect(name, after.Revision)()
	w.Header().Set("Content-Type", "application/x-ndjson")
	if err := out.beat(ctx); err != nil {
		return nil
	}
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		var err error
		select {
		case b := <-batches:
			// What revokes the machine has the secret that replaces the one it knows.
			if _, _, err = s.caller(rq); err == nil {
				err = out.records(ctx)
			}
			if err == nil {
				err = out.send(&frame{Batch: &b})
			}
		case m := <-messages:
			if _, _, err = s.caller(rq); err == nil {
				err = out.send(&frame{Message: &m})
			}
		case <-ticker.C:
			err = out.beat(ctx)
		case <-turn:
			turn = s.turn()
			err = s.mayServe(rq)
		case err = <-ended:
		case <-ctx.Done():
			return nil
		}
		if err != nil {
			f, _ := failureOf(err)
			_ = out.send(&frame{Failed: f}) // the follower may have left
			return nil
		}
	}
}

// newOutgoing returns the stream that a follower requests, and the position that it has.
func (s *Store) newOutgoing(w http.ResponseWriter, q url.Values) (*outgoing, store.Position, error) {
	revision, err := strconv.ParseUint(q.Get("revision"), 10, 64)
	if err != nil {
		return nil, store.Position{}, errors.New("invalid revision")
	}
	out := &outgoing{s: s, w: w, rc: http.NewResponseController(w), last: map[string]store.Sequence{}}
	for _, stream := range streams {
		n, _ := strconv.ParseUint(q.Get("last_"+stream), 10, 64) // none is 0
		out.last[stream] = store.Sequence(n)
	}
	return out, store.Position{Revision: store.Revision(revision), ID: store.ID(q.Get("id"))}, nil
}

// watchFiles returns the commits after a position, until ctx ends, and the error that ends them.
func (s *Store) watchFiles(ctx context.Context, after store.Position) (<-chan store.Batch, <-chan error) {
	batches, ended := make(chan store.Batch), make(chan error, 1)
	go func() {
		for b, err := range s.o.Files.Watch(ctx, "", after) {
			if err != nil {
				ended <- err
				return
			}
			select {
			case batches <- b:
			case <-ctx.Done():
			}
		}
	}()
	return batches, ended
}

// mayServe returns why this machine does not serve a follower any more, nil if it does.
func (s *Store) mayServe(rq *http.Request) error {
	if s.isSuspended() {
		return errReplaced
	}
	if _, _, err := s.caller(rq); err != nil {
		return err
	}
	if s.Role() != Leader {
		return errNotLeader
	}
	return nil
}

func (o *outgoing) beat(ctx context.Context) error {
	if err := o.records(ctx); err != nil {
		return err
	}
	at, err := o.s.o.Files.Position(ctx)
	if err != nil {
		return err
	}
	return o.send(&frame{Beat: &beat{Now: o.s.Time(), Position: at}})
}
