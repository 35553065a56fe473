// Package bucket keeps the files of an archive in a bucket of an S3-compatible
// object store, so that every node reads the bodies that any of them fetched,
// and the loss of a node's disk loses none that had arrived there.
//
// Files are written in the local folder as ever (package archive) and uploaded
// when they are finished: a file that is being written is only on its node. A
// body is read by a range request from its record's offset on, which ends with
// the record.
package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/freshet/freshet/archive"
)

// Config are the options of a Bucket.
type Config struct {
	// Address is s3://BUCKET/PREFIX?endpoint=HOST:PORT&region=R&insecure=true. The
	// endpoint is Amazon's unless given; insecure means HTTP. Keys come from
	// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the shared credentials file, or
	// the machine's role.
	Address string
	// Access and Secret are the keys, if not to be looked for there.
	Access, Secret string

	Dir string // folder of the archive
	// Keep is how long a finished file stays in the folder after it has arrived in
	// the bucket; 0 is for ever.
	Keep time.Duration
	Log  *slog.Logger
}

// Bucket uploads and reads files. It is safe for concurrent use.
type Bucket struct {
	config Config
	client *minio.Client
	name   string
	prefix string

	mu   sync.Mutex
	sent map[string]time.Time // files known to be in the bucket, and since when
}

// poll is how often the folder is looked at.
const poll = 5 * time.Second

// Open connects and checks that the bucket is there.
func Open(ctx context.Context, c Config) (*Bucket, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	b := &Bucket{config: c, sent: map[string]time.Time{}}
	if err := b.connectBucket(); err != nil {
		return nil, fmt.Errorf("bucket %s: %w", c.Address, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	ok, err := b.client.BucketExists(ctx, b.name)
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", c.Address, err)
	}
	if !ok {
		return nil, fmt.Errorf("bucket %s: there is no bucket %q: make it first", c.Address, b.name)
	}
	return b, nil
}

func (b *Bucket) connectBucket() error {
	u, err := url.Parse(b.config.Address)
	if err != nil || u.Scheme != "s3" || u.Host == "" || u.User != nil {
		return errors.New("want s3://BUCKET/PREFIX?endpoint=HOST:PORT, with keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	q := u.Query()
	for k := range q {
		if k != "endpoint" && k != "region" && k != "insecure" {
			return fmt.Errorf("unknown option %q: there are endpoint, region, insecure", k)
		}
	}
	b.name, b.prefix = u.Host, strings.Trim(u.Path, "/")
	providers := []credentials.Provider{&credentials.EnvAWS{}, &credentials.EnvMinio{}, &credentials.FileAWSCredentials{}, &credentials.IAM{}}
	if b.config.Access != "" {
		providers = []credentials.Provider{&credentials.Static{Value: credentials.Value{AccessKeyID: b.config.Access, SecretAccessKey: b.config.Secret, SignerType: credentials.SignatureV4}}}
	}
	b.client, err = minio.New(cmp.Or(q.Get("endpoint"), "s3.amazonaws.com"), &minio.Options{
		Creds:  credentials.NewChainCredentials(providers),
		Secure: q.Get("insecure") != "true", Region: q.Get("region"), MaxRetries: 5,
	})
	return err
}

func (b *Bucket) objectKey(file string) string { return path.Join(b.prefix, file) }

// Run uploads finished files until ctx ends; Upload then sends the last.
func (b *Bucket) Run(ctx context.Context) error {
	t := time.NewTicker(poll)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		if err := b.Upload(ctx); err != nil && ctx.Err() == nil {
			b.config.Log.Error("archive: upload", "err", err) // tried again at the next turn
		}
	}
}

// Upload sends the finished files that are not in the bucket yet, and removes
// those that were long enough.
func (b *Bucket) Upload(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(b.config.Dir, "*.warc*"))
	if err != nil {
		return fmt.Errorf("archive %s: %w", b.config.Dir, err)
	}
	var errs []error
	for _, path := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !archive.IsFile(path) {
			continue
		}
		if err := b.uploadFile(ctx, path); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", filepath.Base(path), err))
		}
	}
	return errors.Join(errs...)
}

func (b *Bucket) uploadFile(ctx context.Context, path string) error {
	name := filepath.Base(path)
	b.mu.Lock()
	since, sent := b.sent[name]
	b.mu.Unlock()
	if sent {
		if b.config.Keep > 0 && time.Since(since) > b.config.Keep {
			return b.removeLocal(ctx, path)
		}
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	there, err := b.client.StatObject(ctx, b.name, b.objectKey(name), minio.StatObjectOptions{})
	if err != nil && minio.ToErrorResponse(err).Code != minio.NoSuchKey {
		return err
	}
	if err != nil || there.Size != info.Size() {
		if _, err := b.client.FPutObject(ctx, b.name, b.objectKey(name), path, minio.PutObjectOptions{ContentType: "application/warc", DisableMultipart: info.Size() < 64<<20}); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent[name] = time.Now()
	return nil
}

// removeLocal removes a local file after a last look at the bucket.
func (b *Bucket) removeLocal(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	there, err := b.client.StatObject(ctx, b.name, b.objectKey(filepath.Base(path)), minio.StatObjectOptions{})
	if err != nil {
		return err
	}
	if there.Size != info.Size() {
		return fmt.Errorf("%d bytes in the bucket, %d here: it stays", there.Size, info.Size())
	}
	b.mu.Lock()
	delete(b.sent, filepath.Base(path))
	b.mu.Unlock()
	return os.Remove(path)
}

// Has reports whether a file has arrived in the bucket.
func (b *Bucket) Has(ctx context.Context, file string) bool {
	b.mu.Lock()
	_, sent := b.sent[file]
	b.mu.Unlock()
	if sent {
		return true
	}
	_, err := b.client.StatObject(ctx, b.name, b.objectKey(file), minio.StatObjectOptions{})
	return err == nil
}

// Read returns the exchange at a position, fs.ErrNotExist when its file has not
// arrived, or archive.ErrDamaged.
func (b *Bucket) Read(ctx context.Context, p archive.Position) (*archive.Exchange, error) {
	if p.IsZero() || p.File != filepath.Base(p.File) || p.Offset < 0 {
		return nil, fmt.Errorf("archive: %q is no file of the archive: %w", p.File, fs.ErrNotExist)
	}
	var opt minio.GetObjectOptions
	if p.Offset > 0 { // to the end of the file, of which only the record is read
		if err := opt.SetRange(p.Offset, 0); err != nil {
			return nil, fmt.Errorf("archive %s: %w", p.File, err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, _, _, err := (&minio.Core{Client: b.client}).GetObject(ctx, b.name, b.objectKey(p.File), opt)
	if err != nil {
		return nil, fmt.Errorf("archive %s in the bucket: %w", p.File, ofObject(err))
	}
	defer body.Close()
	x, err := archive.ReadRecord(bodyReader{body})
	if err != nil {
		return nil, fmt.Errorf("archive %s in the bucket at %d: %w", p.File, p.Offset, err)
	}
	return x, nil
}

// ofObject distinguishes errors of one object from errors of the bucket, which are transient.
func ofObject(err error) error {
	switch minio.ToErrorResponse(err).Code {
	case minio.NoSuchKey:
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case minio.InvalidRange: // the object ends before the record
		return fmt.Errorf("%w: %w", archive.ErrDamaged, err)
	case "InvalidObjectState": // it was moved to a class from which nothing is read
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return &bucketError{err}
}

// bucketError is an error of the bucket or the way to it.
type bucketError struct{ err error }

func (e *bucketError) Error() string { return e.err.Error() }
func (e *bucketError) Unwrap() error { return e.err }

// Timeout and Temporary make it a net.Error: it passes.
func (e *bucketError) Timeout() bool   { return false }
func (e *bucketError) Temporary() bool { return true }

// bodyReader reads an answer; what cuts it off is the connection, not the object.
type bodyReader struct{ io.Reader }

func (b bodyReader) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &bucketError{err}
	}
	return n, err
}
