package board

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/lazo-ml/lazo/internal/board"
)

// Options are settings of [Serve].
type Options struct {
	// Token is by default random, and has at least 16 characters.
	Token string
	// Hosts are further names of this machine in addresses of the page, like a proxy's. IP addresses and localhost need
	// none.
	Hosts []string
	// Numbers, if not nil, returns further numbers by name, like the memory of devices. It is called every two seconds
	// during a run, on a goroutine of its own.
	Numbers func() map[string]float64
}

// A nil Board is that of another process of a job.
type Board struct {
	options  Options
	address  string
	store    *board.Store
	server   *http.Server
	done     chan struct{}
	close    sync.Once
	closeErr error

	mu      sync.Mutex
	running []*board.Run
	rest    []byte // an incomplete line
}

const (
	defaultAddress = "127.0.0.1:9465"
	shortest       = 16
	leave          = 2 * time.Second
)

// Serve serves the page at an address HOST:PORT until Close. Without a host it is 127.0.0.1; "" is 127.0.0.1:9465.
// Every user of this machine can then read the page; changes need the token. At an address that other machines can
// reach, reading needs the token too. It is sent unencrypted: use a tunnel, or a proxy with TLS.
//
// In a job, rank 0 alone calls Serve, and the other ranks call the methods of a nil Board.
func Serve(address string, options Options) (*Board, error) {
	options.Hosts = slices.Clone(options.Hosts)
	if options.Token = cmp.Or(options.Token, board.NewToken()); len(options.Token) < shortest {
		return nil, fmt.Errorf("board: the token has %d characters, expected at least %d", len(options.Token), shortest)
	}
	listener, open, err := board.Listen(cmp.Or(address, defaultAddress))
	if err != nil {
		return nil, fmt.Errorf("board: %w", err)
	}
	b := &Board{options: options, address: listener.Addr().String(), store: board.NewStore(), done: make(chan struct{})}
	b.server = board.NewServer(b.store.Handler(board.Access{Token: options.Token, Reading: open, Hosts: options.Hosts}))
	go func() {
		defer close(b.done)
		_ = b.server.Serve(listener)
	}()
	return b, nil
}

// URL returns the page's address with the token, which a browser does not send in requests for pages.
func (b *Board) URL() string {
	if b == nil {
		return ""
	}
	return fmt.Sprintf("http://%s/#token=%s", b.address, b.options.Token)
}

// Write adds lines to the logs of the runs in progress, as for slog.NewTextHandler(io.MultiWriter(os.Stderr, b), nil).
func (b *Board) Write(p []byte) (int, error) {
	if b == nil {
		return len(p), nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rest = append(b.rest, p...); len(b.rest) > 64<<10 { // no line
		b.rest = append(b.rest, '\n')
	}
	if whole := bytes.LastIndexByte(b.rest, '\n') + 1; whole > 0 {
		for _, r := range b.running {
			r.Log(string(b.rest[:whole]))
		}
		b.rest = append(b.rest[:0], b.rest[whole:]...)
	}
	return len(p), nil
}

func (b *Board) begins(r *board.Run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = append(b.running, r)
}

func (b *Board) ends(r *board.Run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = slices.DeleteFunc(b.running, func(other *board.Run) bool { return other == r })
}

// Close ends the server. Open pages keep what they show.
func (b *Board) Close() error {
	if b == nil {
		return nil
	}
	b.close.Do(func() {
		b.store.End()
		ctx, cancel := context.WithTimeout(context.Background(), leave)
		defer cancel()
		if err := b.server.Shutdown(ctx); err != nil {
			b.closeErr = b.server.Close()
		}
		<-b.done
		if b.closeErr != nil && !errors.Is(b.closeErr, http.ErrServerClosed) {
			b.closeErr = fmt.Errorf("board: %w", b.closeErr)
		}
	})
	return b.closeErr
}
