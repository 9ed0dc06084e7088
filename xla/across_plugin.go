package xla

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/internal/joined"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

type byPlugin struct {
	job   Job
	store Store // nil: the plugin needs none
	end   context.CancelFunc
}

const (
	optionNode  = "node_id"
	optionNodes = "num_nodes"
)

func newByPlugin(plugin Plugin, o *openOptions) (*byPlugin, error) {
	for _, name := range []string{optionNode, optionNodes} {
		if _, set := o.client[name]; set {
			return nil, fmt.Errorf("client option %q: Across sets it", name)
		}
	}
	b := &byPlugin{job: o.job, store: o.store}
	switch {
	case plugin.Kind == TPU && o.store != nil:
		return nil, errors.New("TPUs find each other by their own variables and need no store: leave WithStore out")
	case plugin.Kind != TPU && o.store == nil:
		b.store = o.job
	}
	return b, nil
}

const openLimit = 10 * time.Minute

type openedRank struct {
	Failed string
	Gave   bool // gave up after another failed
	Own    []int
	All    []int
}

func (b *byPlugin) open(library *pjrt.Plugin, plugin Plugin, options map[string]any) (*pjrt.Client, [][]int, error) {
	what := fmt.Sprintf("open the plugin %q, of PJRT API %s", plugin.Kind, plugin.API)
	if err := sameOnRanks(b.job, what, "", sha256.Sum256([]byte(what))); err != nil {
		return nil, nil, err
	}
	prefix, err := b.job.Broadcast(fmt.Appendf(nil, "xla/%s/", rand.Text()))
	if err != nil {
		return nil, nil, err
	}
	done := b.job.Busy(what, openLimit)
	made, err := b.client(library, plugin, options, string(prefix))
	done()
	says := openedRank{}
	if err != nil {
		says.Failed, says.Gave = err.Error(), errors.As(err, new(*othersFault))
	} else {
		for _, d := range made.AddressableDevices() {
			says.Own = append(says.Own, d.ID())
		}
		for _, d := range made.Devices() {
			says.All = append(says.All, d.ID())
		}
	}
	ids, togetherErr := b.together(says)
	if err != nil && !says.Gave {
		return nil, nil, err
	}
	if togetherErr != nil {
		if made != nil {
			b.end()
			togetherErr = errors.Join(togetherErr, made.Close())
		}
		return nil, nil, togetherErr
	}
	return made, ids, err
}

func (b *byPlugin) client(library *pjrt.Plugin, plugin Plugin, options map[string]any, prefix string) (*pjrt.Client, error) {
	if b.store == nil {
		b.end = func() {}
		return newClient(library, plugin, options, nil)
	}
	all := maps.Clone(options)
	if all == nil {
		all = map[string]any{}
	}
	all[optionNode], all[optionNodes] = int64(b.job.Rank()), int64(b.job.Size())
	ctx, cancel := context.WithCancelCause(context.Background())
	b.end = func() { cancel(nil) }
	// Otherwise processes would wait minutes for one that failed.
	failed := prefix + "failed"
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		if text, err := b.store.Get(waiting, failed); err == nil {
			cancel(&othersFault{string(text)})
		}
	}()
	made, err := newClient(library, plugin, all, &keyValues{b.store, prefix, ctx})
	if err == nil {
		return made, nil
	}
	if fault := (*othersFault)(nil); errors.As(context.Cause(ctx), &fault) {
		return nil, fmt.Errorf("%w (%w)", fault, err)
	}
	b.end()
	// Not ctx: the goroutine above cancels it when it reads this key.
	telling, told := context.WithTimeout(context.Background(), askLimit)
	defer told()
	putErr := b.store.Put(telling, failed, fmt.Appendf(nil, "rank %d: %v", b.job.Rank(), err))
	if putErr != nil && !errors.Is(putErr, joined.ErrKeyExists) {
		err = errors.Join(err, putErr)
	}
	return nil, err
}

type othersFault struct{ text string }

func (f *othersFault) Error() string { return f.text }

func (b *byPlugin) together(own openedRank) ([][]int, error) {
	text, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	parts, err := b.job.AllGather(text)
	if err != nil {
		return nil, err
	}
	all := make([]openedRank, len(parts))
	for rank, part := range parts {
		if err := json.Unmarshal(part, &all[rank]); err != nil {
			return nil, fmt.Errorf("read the devices of rank %d: %w", rank, err)
		}
	}
	for _, gave := range []bool{false, true} { // first failures, then those that gave up
		for rank, one := range all {
			if one.Failed != "" && one.Gave == gave {
				return nil, fmt.Errorf("rank %d: %s", rank, strings.TrimPrefix(one.Failed, "xla: "))
			}
		}
	}
	return byRank(all)
}

func byRank(all []openedRank) (ids [][]int, err error) {
	var list []int
	var text strings.Builder
	wrong := ""
	for rank, one := range all {
		fmt.Fprintf(&text, "\n\trank %d has the devices %v of %v", rank, one.Own, one.All)
		if len(one.Own) != len(all[0].Own) && wrong == "" {
			wrong = "the processes have different numbers of devices"
		}
		for _, id := range one.Own {
			if slices.Contains(list, id) && wrong == "" {
				wrong = fmt.Sprintf("the device %d is in two processes", id)
			}
			list = append(list, id)
		}
		ids = append(ids, one.Own)
	}
	slices.Sort(list)
	for rank, one := range all {
		if slices.Sort(one.All); wrong == "" && !slices.Equal(one.All, list) {
			wrong = fmt.Sprintf("rank %d lists different devices than the processes have", rank)
		}
	}
	if wrong != "" {
		return nil, fmt.Errorf("%s: check which devices the launcher lets each process use:%s", wrong, text.String())
	}
	return ids, nil
}

// docs/decisions/0022
func (b *byPlugin) compile(client *pjrt.Client, cache *cache, text string, options pjrt.CompileOptions) (*pjrt.Executable, fromCache, error) {
	kept := cache.find(client, text, options)
	missing := []int64{0}
	if kept == nil {
		missing[0] = 1
	}
	err := b.job.Agree(missing)
	if err == nil && missing[0] == 0 {
		return kept, cacheHit, nil
	}
	if kept != nil {
		err = errors.Join(err, kept.Close())
	}
	if err != nil {
		return nil, cacheOff, err
	}
	return cache.fill(text, options, func() (*pjrt.Executable, error) { return client.Compile([]byte(text), options) })
}

func (b *byPlugin) close() error {
	b.end()
	return nil
}

type keyValues struct {
	store  Store
	prefix string
	ctx    context.Context
}

// askLimit limits requests that wait for no process.
const askLimit = time.Minute

func (k *keyValues) Get(key string, timeout time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(k.ctx, timeout)
	defer cancel()
	return k.store.Get(ctx, k.prefix+key)
}

func (k *keyValues) TryGet(key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(k.ctx, askLimit)
	defer cancel()
	value, err := k.store.TryGet(ctx, k.prefix+key)
	if errors.Is(err, joined.ErrNoKey) {
		err = fmt.Errorf("%w: %w", pjrt.ErrKeyNotFound, err)
	}
	return value, err
}

func (k *keyValues) Put(key string, value []byte) error {
	ctx, cancel := context.WithTimeout(k.ctx, askLimit)
	defer cancel()
	err := k.store.Put(ctx, k.prefix+key, value)
	if errors.Is(err, joined.ErrKeyExists) {
		err = fmt.Errorf("%w: %w", pjrt.ErrKeyExists, err)
	}
	return err
}
