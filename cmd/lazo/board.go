package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/board"
	"github.com/lazo-ml/lazo/internal/runs"
)

type boardCommand struct {
	Dir    string        `arg:"" help:"Folder with the folders of runs, as for lazo runs. It may be empty yet."`
	Listen string        `default:"127.0.0.1:9465" help:"Address HOST:PORT of the page. Every user of this machine can read it. A host that other machines can reach needs the token that the command prints."`
	Host   []string      `placeholder:"NAME" help:"Further name of this machine in addresses of the page, such as a proxy's. IP addresses and localhost need none."`
	Every  time.Duration `default:"1s" help:"How often to look at the files."`
}

// Validate makes a missing folder wrong usage.
func (c boardCommand) Validate() error { return runsCommand{Dir: c.Dir}.Validate() }

func (c boardCommand) Run(s session) (err error) {
	if c.Every <= 0 {
		return fmt.Errorf("--every is %v, expected more than 0", c.Every)
	}
	listener, open, err := board.Listen(c.Listen)
	if err != nil {
		return err
	}
	access := board.Access{Reading: open, Hosts: c.Host}
	address := fmt.Sprintf("http://%s/", listener.Addr())
	if open {
		access.Token = board.NewToken()
		address += "#token=" + access.Token
	}
	store := board.NewStore()
	server := board.NewServer(store.Handler(access))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	defer func() {
		err = errors.Join(err, server.Close())
		if served := <-ended; err == nil && !errors.Is(served, http.ErrServerClosed) {
			err = served
		}
	}()
	fmt.Fprintln(s.stdout, address)
	return c.follow(s, store)
}

const findEvery = 5 * time.Second

// follow looks at the files until a signal. Large folders get a tenth of the time.
func (c boardCommand) follow(s session, store *board.Store) error {
	log := slog.New(slog.NewTextHandler(s.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	all := map[string]*board.Run{}
	f := runs.NewFollower(c.Dir, func(name string) runs.Sink {
		all[name] = store.Add(name)
		return boardSink{all[name]}
	}, func(name string) {
		all[name].Remove()
		delete(all, name)
	}, log)
	var found time.Time
	var finding time.Duration
	for first := true; ; first = false {
		begin := time.Now()
		if first || begin.Sub(found) > max(10*finding, findEvery) {
			if err := f.Find(s.ctx); err != nil {
				if errors.Is(err, os.ErrNotExist) && !first {
					err = fmt.Errorf("the folder is no longer there: %w", err)
				}
				return boardEnd(s.ctx, err)
			}
			found = time.Now()
			finding = found.Sub(begin)
		}
		begin = time.Now()
		if err := f.Read(s.ctx); err != nil {
			return boardEnd(s.ctx, err)
		}
		next := time.NewTimer(max(c.Every, 10*time.Since(begin)))
		select {
		case <-next.C:
		case <-s.ctx.Done():
			next.Stop()
			return nil
		}
	}
}

func boardEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

type boardSink struct{ *board.Run }

func (b boardSink) Search(s *runs.Search) { b.Run.Describe(func(i *board.Info) { i.Search = s }) }

func (b boardSink) Describe(status checkpoint.RunStatus, why string, settings map[string]string, err error) {
	b.Run.Describe(func(i *board.Info) {
		i.Status, i.Why, i.Settings, i.Err = string(status), why, settings, ""
		if err != nil {
			i.Err = err.Error()
		}
	})
}
