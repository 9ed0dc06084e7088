package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/lazo-ml/lazo/dist"
)

const mostRequest = 64<<20 + 1<<20

const user = "root"

// Embed starts an etcd server of one member in rank 0 and opens the store in it. All ranks must call it, and close the
// store. The server listens on localhost if all ranks are on one host, otherwise on all addresses, in plain TCP with a
// password that the job distributes. The data folder is temporary. ctx applies to the opening only. Values have at most
// 64 MiB.
func Embed(ctx context.Context, job *dist.Job) (*Store, error) {
	if job == nil {
		return nil, errors.New("etcd: embed a server: the job is nil: see dist.Join")
	}
	s := &Store{job: job}
	config := func() clientv3.Config {
		return clientv3.Config{Endpoints: s.at.Endpoints, Username: user, Password: s.at.Password, MaxCallSendMsgSize: mostRequest, DialTimeout: 10 * time.Second}
	}
	err := s.meet(func() error {
		if err := s.serve(ctx); err != nil {
			return err
		}
		return s.lead(ctx, config())
	})
	if err == nil && job.Rank() != 0 {
		err = s.dial(ctx, config())
	}
	if err != nil {
		return nil, fmt.Errorf("etcd: embed a server: %w", errors.Join(err, s.drop()))
	}
	return s, nil
}

func (s *Store) serve(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "lazo-etcd")
	if err != nil {
		return err
	}
	s.stop = func() error { return os.RemoveAll(dir) }
	listen := "127.0.0.1"
	if s.job.LocalSize() < s.job.Size() {
		listen = "0.0.0.0"
	}
	hosts := func(host string) []url.URL { return []url.URL{{Scheme: "http", Host: host + ":0"}} }
	config := embed.NewConfig()
	config.Dir, config.Name = dir, "lazo"
	config.ListenClientUrls, config.AdvertiseClientUrls = hosts(listen), hosts("127.0.0.1")
	config.ListenPeerUrls, config.AdvertisePeerUrls = hosts("127.0.0.1"), hosts("127.0.0.1") // no peers
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	config.UnsafeNoFsync = true // not read after the job
	config.MaxRequestBytes = mostRequest
	config.BcryptCost = 4 // the password cannot be guessed
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	s.stop = func() error {
		server.Close()
		return os.RemoveAll(dir)
	}
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		return fmt.Errorf("the server ended: %w", err)
	case <-ctx.Done():
		return fmt.Errorf("the server does not start: %w", context.Cause(ctx))
	}
	s.at.Endpoints, s.at.Password = reachable(server.Clients[0].Addr()), rand.Text()
	return s.lock(ctx)
}

func (s *Store) lock(ctx context.Context) (err error) {
	open, err := clientv3.New(clientv3.Config{Endpoints: s.at.Endpoints[:1], Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, open.Close()) }()
	for _, step := range []func() error{
		func() error { _, err := open.UserAdd(ctx, user, s.at.Password); return err },
		func() error { _, err := open.RoleAdd(ctx, user); return err },
		func() error { _, err := open.UserGrantRole(ctx, user, user); return err },
		func() error { _, err := open.AuthEnable(ctx); return err },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("set the server's password: %w", cause(ctx, err))
		}
	}
	return nil
}

func reachable(a net.Addr) (list []string) {
	_, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return []string{a.String()}
	}
	list = []string{"127.0.0.1:" + port}
	if tcp, ok := a.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return list
	}
	own, _ := net.InterfaceAddrs() // without them, its name alone
	for _, address := range own {
		if n, ok := address.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			list = append(list, net.JoinHostPort(n.IP.String(), port))
		}
	}
	if name, err := os.Hostname(); err == nil {
		list = append(list, net.JoinHostPort(name, port))
	}
	return list
}
