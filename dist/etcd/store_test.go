package etcd_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/dist/etcd"
	"github.com/lazo-ml/lazo/dist/launch"
	"github.com/lazo-ml/lazo/dist/storetest"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/internal/ranks"
	"github.com/lazo-ml/lazo/xla"
)

// Variables that a test hands to its ranks.
const (
	fakeVariable     = "LAZO_TEST_FAKE"
	endpointVariable = "LAZO_TEST_ENDPOINT"
)

// server is an etcd of a cluster's, until the end of the test.
func server(t *testing.T) (endpoint string) {
	t.Helper()
	c := embed.NewConfig()
	c.Dir, c.UnsafeNoFsync = t.TempDir(), true
	host := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.ListenClientUrls, c.AdvertiseClientUrls, c.ListenPeerUrls, c.AdvertisePeerUrls = host, host, host, host
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	e, err := embed.StartEtcd(c)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	<-e.Server.ReadyNotify()
	return e.Clients[0].Addr().String()
}

func client(t *testing.T, endpoint string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// of returns the store of a test's rank.
func of(ctx context.Context, job *dist.Job) (*etcd.Store, error) {
	if endpoint := os.Getenv(endpointVariable); endpoint != "" {
		return etcd.Open(ctx, job, clientv3.Config{Endpoints: []string{endpoint}})
	}
	return etcd.Embed(ctx, job)
}

func TestStore(t *testing.T) {
	for _, name := range []string{"embedded", "external"} {
		t.Run(name, func(t *testing.T) {
			endpoint := ""
			if name == "external" && !ranks.Inside(t) {
				endpoint = server(t)
			}
			if !ranks.Over(t, 3, func(o *launch.Options) { o.NoMPI, o.Env = true, append(o.Env, endpointVariable+"="+endpoint) }) {
				if endpoint != "" {
					left, err := client(t, endpoint).Get(t.Context(), "", clientv3.WithPrefix(), clientv3.WithCountOnly())
					require.NoError(t, err)
					require.Zero(t, left.Count, "keys that were left")
				}
				return
			}
			job, err := dist.Join(t.Context())
			require.NoError(t, err)
			start := time.Now()
			store, err := of(t.Context(), job)
			require.NoError(t, err)
			t.Logf("%s is open after %v", name, time.Since(start))
			storetest.Run(t, job, store)
			require.NoError(t, store.Close())
			require.NoError(t, store.Close())
			_, err = store.TryGet(t.Context(), "once/0")
			require.Error(t, err)
			require.NotErrorIs(t, err, dist.ErrNoKey)
			require.NoError(t, job.Close())
		})
	}
}

// Processes of an accelerator, replaced by the fake plugin, find each other by etcd.
func TestAcross(t *testing.T) {
	var fake func(*launch.Options)
	if !ranks.Inside(t) {
		library := plugintest.Fake(t)
		fake = func(o *launch.Options) { o.NoMPI, o.Env = true, append(o.Env, fakeVariable+"="+library) }
	}
	if !ranks.Over(t, 2, fake) {
		return
	}
	job, err := dist.Join(t.Context())
	require.NoError(t, err)
	store, err := etcd.Embed(t.Context(), job)
	require.NoError(t, err)
	r, err := xla.Open(t.Context(), os.Getenv(fakeVariable), xla.Across(job), xla.WithStore(store))
	require.NoError(t, err)
	require.Equal(t, 4, r.NumDevices())
	p, err := r.CompileOver(xla.Placement{
		Mesh:  xla.Mesh{Axes: []xla.MeshAxis{{Name: "data", Size: 4}}},
		Split: func(string, shapes.Shape) xla.Split { return xla.Split{{"data"}} },
	}, "sum", func(g *graph.Graph) xla.Built {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 16))
		return xla.Built{Outputs: []*graph.Node{graph.ReduceSum(graph.Reshape(x, 4, 4), 0)}}
	})
	require.NoError(t, err)
	var inputs []compute.Buffer
	for d := range 2 {
		b, err := r.BufferFromFlatData(compute.DeviceNum(d), []float32{1, 2, 3, float32(2*job.Rank() + d)}, shapes.Make(dtypes.Float32, 4))
		require.NoError(t, err)
		inputs = append(inputs, b)
	}
	for range 3 {
		outputs, err := p.Run(inputs, nil)
		require.NoError(t, err)
		for _, b := range outputs {
			got := make([]float32, 4)
			require.NoError(t, b.ToFlatData(got))
			require.Equal(t, []float32{4, 8, 12, 6}, got)
		}
	}
	require.NoError(t, r.Close())
	require.NoError(t, store.Close())
	require.NoError(t, job.Close())
}

// Jobs, and starts of one job, have keys of their own, which their lease ends.
func TestOpen_keysOfEachJob(t *testing.T) {
	endpoint := server(t)
	c := client(t, endpoint)
	var stores []*etcd.Store
	for i := range 2 { // as two starts of one job that is called alike
		job, err := dist.Join(t.Context())
		require.NoError(t, err)
		store, err := etcd.Open(t.Context(), job, clientv3.Config{Endpoints: []string{endpoint}})
		require.NoError(t, err)
		require.NoError(t, store.Put(t.Context(), "k", fmt.Append(nil, i)))
		stores = append(stores, store)
	}
	for i, store := range stores {
		got, err := store.Get(t.Context(), "k")
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(i), string(got))
	}
	all, err := c.Get(t.Context(), "", clientv3.WithPrefix())
	require.NoError(t, err)
	require.Len(t, all.Kvs, 2)
	for _, kv := range all.Kvs {
		require.True(t, strings.HasPrefix(string(kv.Key), "lazo/job/0/"), string(kv.Key))
		lives, err := c.TimeToLive(t.Context(), clientv3.LeaseID(kv.Lease))
		require.NoError(t, err)
		require.Positive(t, lives.TTL)
		require.LessOrEqual(t, lives.GrantedTTL, int64(60))
	}
	// The end of the lease, as when rank 0 has died.
	_, err = c.Revoke(t.Context(), clientv3.LeaseID(all.Kvs[0].Lease))
	require.NoError(t, err)
	all, err = c.Get(t.Context(), "", clientv3.WithPrefix())
	require.NoError(t, err)
	require.Len(t, all.Kvs, 1)
	for _, store := range stores {
		_ = store.Close() // one store's lease has ended
	}
}

func TestOpen_refusals(t *testing.T) {
	job, err := dist.Join(t.Context())
	require.NoError(t, err)
	_, err = etcd.Open(t.Context(), job, clientv3.Config{})
	require.ErrorContains(t, err, "name no endpoints")
	_, err = etcd.Open(t.Context(), nil, clientv3.Config{})
	require.ErrorContains(t, err, "the job is nil")
	_, err = etcd.Embed(t.Context(), nil)
	require.ErrorContains(t, err, "the job is nil")
	soon, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = etcd.Open(soon, job, clientv3.Config{Endpoints: []string{"127.0.0.1:1"}})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "etcd: open the store at [127.0.0.1:1]")
}
