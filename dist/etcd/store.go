package etcd

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/lazo-ml/lazo/dist"
)

// Store is a job's store.
type Store struct {
	job    *dist.Job
	client *clientv3.Client
	at     meeting
	// At rank 0.
	revoke, stop func() error // the keys; the server
	closing      sync.Once
	closed       error
}

var _ dist.Store = (*Store)(nil)

type meeting struct {
	Prefix    string
	Lease     clientv3.LeaseID
	Endpoints []string // of an embedded server
	Password  string
	Failed    string
}

// lease is renewed three times in this time.
const lease = 60 * time.Second

// Open opens a job's store in a running etcd. All ranks call it, with the client's settings (endpoints, TLS, user), and
// close the store. ctx applies to the opening only. The server limits values: 1.5 MiB unless it has
// --max-request-bytes.
func Open(ctx context.Context, job *dist.Job, config clientv3.Config) (*Store, error) {
	if job == nil {
		return nil, errors.New("etcd: open the store: the job is nil: see dist.Join")
	}
	if len(config.Endpoints) == 0 {
		return nil, errors.New("etcd: open the store: the client's settings name no endpoints: expected at least one, such as https://etcd:2379")
	}
	s := &Store{job: job}
	err := s.meet(func() error { return s.lead(ctx, config) })
	if err == nil && job.Rank() != 0 {
		err = s.dial(ctx, config)
	}
	if err != nil {
		return nil, fmt.Errorf("etcd: open the store at %v: %w", config.Endpoints, errors.Join(err, s.drop()))
	}
	return s, nil
}

func (s *Store) meet(lead func() error) error {
	var leadErr error
	if s.job.Rank() == 0 {
		if leadErr = lead(); leadErr != nil {
			s.at.Failed = leadErr.Error()
		}
	}
	text, err := json.Marshal(s.at)
	if err != nil {
		return err
	}
	if text, err = s.job.Broadcast(text); leadErr != nil || err != nil {
		return errors.Join(leadErr, err)
	}
	if err := json.Unmarshal(text, &s.at); err != nil {
		return fmt.Errorf("read the store's description from rank 0: %w", err)
	}
	if s.at.Failed != "" {
		return fmt.Errorf("rank 0: %s", s.at.Failed)
	}
	return nil
}

func (s *Store) lead(ctx context.Context, config clientv3.Config) error {
	s.at.Prefix = fmt.Sprintf("lazo/%s/%s/%s/", cmp.Or(s.job.Name(), "job"), cmp.Or(s.job.Attempt(), "0"), rand.Text())
	if err := s.dial(ctx, config); err != nil {
		return err
	}
	granted, err := s.client.Grant(ctx, int64(lease/time.Second))
	if err != nil {
		return fmt.Errorf("a lease for the job's keys: %w", cause(ctx, err))
	}
	s.at.Lease = granted.ID
	renewing, stop := context.WithCancel(context.Background())
	renewals, err := s.client.KeepAlive(renewing, s.at.Lease)
	if err != nil {
		stop()
		return fmt.Errorf("keep the lease of the job's keys: %w", err)
	}
	go func() {
		for range renewals { // unread renewals are logged
		}
	}()
	s.revoke = func() error {
		stop()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_, err := s.client.Revoke(ctx, s.at.Lease)
		return err
	}
	return nil
}

func (s *Store) dial(ctx context.Context, config clientv3.Config) (err error) {
	if config.Logger == nil && config.LogConfig == nil {
		config.Logger = zap.NewNop()
	}
	if s.client, err = clientv3.New(config); err != nil {
		return err
	}
	_, err = s.client.Get(ctx, s.at.Prefix, clientv3.WithCountOnly())
	return cause(ctx, err)
}

func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func wrap(call, key string, err error) error { return fmt.Errorf("etcd: %s %q: %w", call, key, err) }

var errNoKey = errors.New("expected a key of one byte at least")

func begin(ctx context.Context, key string) error {
	if key == "" {
		return errNoKey
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Put sets a key's value, or returns [dist.ErrKeyExists].
func (s *Store) Put(ctx context.Context, key string, value []byte) error {
	if err := begin(ctx, key); err != nil {
		return wrap("Put", key, err)
	}
	full := s.at.Prefix + key
	done, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(full), "=", 0)).
		Then(clientv3.OpPut(full, string(value), clientv3.WithLease(s.at.Lease))).Commit()
	switch {
	case err != nil:
		return wrap("Put", key, cause(ctx, err))
	case !done.Succeeded:
		return wrap("Put", key, dist.ErrKeyExists)
	}
	return nil
}

func (s *Store) get(ctx context.Context, key string) (value []byte, found bool, revision int64, err error) {
	got, err := s.client.Get(ctx, s.at.Prefix+key)
	if err != nil {
		return nil, false, 0, cause(ctx, err)
	}
	if len(got.Kvs) > 0 {
		return got.Kvs[0].Value, true, 0, nil
	}
	return nil, false, got.Header.Revision, nil
}

// TryGet does not wait. It may return [dist.ErrNoKey].
func (s *Store) TryGet(ctx context.Context, key string) ([]byte, error) {
	err := begin(ctx, key)
	if err == nil {
		var value []byte
		var found bool
		if value, found, _, err = s.get(ctx, key); found {
			return value, nil
		}
		if err == nil {
			err = dist.ErrNoKey
		}
	}
	return nil, wrap("TryGet", key, err)
}

// Get waits until the key has a value or ctx ends.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	if err := begin(ctx, key); err != nil {
		return nil, wrap("Get", key, err)
	}
	for {
		value, found, revision, err := s.get(ctx, key)
		if err != nil {
			return nil, wrap("Get", key, err)
		}
		if found {
			return value, nil
		}
		if value, found = s.watch(ctx, key, revision+1); found {
			return value, nil
		}
		// The server ended the watch: retry.
		if ctx.Err() != nil {
			return nil, wrap("Get", key, context.Cause(ctx))
		}
		if s.client.Ctx().Err() != nil {
			return nil, wrap("Get", key, errors.New("the store is closed"))
		}
	}
}

func (s *Store) watch(ctx context.Context, key string, from int64) (value []byte, found bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for r := range s.client.Watch(ctx, s.at.Prefix+key, clientv3.WithRev(from)) {
		for _, e := range r.Events {
			if e.Type == mvccpb.Event_PUT {
				return e.Kv.Value, true
			}
		}
	}
	return nil, false
}

// Close waits for all ranks to call it, deletes the job's keys and stops an embedded server. Waiting calls return an
// error.
func (s *Store) Close() error {
	s.closing.Do(func() {
		err := s.job.Barrier("close the store")
		if err = errors.Join(err, s.drop()); err != nil {
			s.closed = fmt.Errorf("etcd: close the store: %w", err)
		}
	})
	return s.closed
}

// drop releases the server last: it waits for its clients.
func (s *Store) drop() (err error) {
	if s.revoke != nil {
		err = s.revoke()
	}
	if s.client != nil {
		err = errors.Join(err, s.client.Close())
	}
	if s.stop != nil {
		err = errors.Join(err, s.stop())
	}
	return err
}
