//go:build linux

package supervisor

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

const (
	localQuiet   = 300 * time.Millisecond // kubeadm writes several files: they are looked at when they come to rest
	localRestive = 3 * time.Second        // but no later than this, because others write into the same folders
	localRecheck = time.Minute            // a slow second look, where a notification was missed
)

// lookLocal reads what the kubelet and its local files are now. The error is about the kubelet's binary.
func (in *inputs) lookLocal() (core.LocalChanged, error) {
	identity, err := kubeletconfig.Identify(in.Kubelet, in.Arguments)
	return core.LocalChanged{Kubelet: identity, Local: kubeletconfig.LocalContent(in.Arguments)}, err
}

// errLocalChanged calls a start off. Verdicts, trials and what is reported as pending are about the files as the loop knows them, so
// it has to hear of a change that is too young to have been reported before the kubelet is started with it.
var errLocalChanged = errors.New("the local files changed a moment ago")

// watchLocal tells the loop when the local --config file, the drop-in folder or the kubelet binary are no longer what was seen of
// them, until ctx ends. It watches folders, because files are replaced, and those behind links too.
func (w *watches) watchLocal(ctx context.Context, seen core.LocalChanged) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		w.Logger.Warn("local files are not watched, and only looked at from time to time", zap.Error(err))
		watcher = &fsnotify.Watcher{}
	} else {
		defer func() { _ = watcher.Close() }()
	}
	wait := time.NewTimer(localQuiet) // what happened before the folders were watched
	defer wait.Stop()
	var restive time.Time
	for {
		if watcher.Events != nil {
			w.watchFolders(watcher)
		}
		select {
		case <-watcher.Events:
			if restive.IsZero() {
				restive = time.Now()
			}
			if time.Since(restive) < localRestive {
				wait.Reset(localQuiet)
			}
			continue
		case err := <-watcher.Errors:
			w.Logger.Debug("watching the local files", zap.Error(err))
			continue
		case <-wait.C:
			wait.Reset(localRecheck)
			restive = time.Time{}
		case <-ctx.Done():
			return
		}
		if now, err := w.lookLocal(); err == nil && now != seen {
			seen = now
			w.send(ctx, now)
		}
	}
}

// watchFolders adds what is not watched yet. Adding a folder again changes nothing.
func (w *watches) watchFolders(watcher *fsnotify.Watcher) {
	for _, path := range []string{w.arguments.Config, w.Kubelet} {
		if path == "" {
			continue
		}
		_ = watcher.Add(filepath.Dir(path))
		if target, err := filepath.EvalSymlinks(path); err == nil {
			_ = watcher.Add(filepath.Dir(target))
		}
	}
	if w.arguments.ConfigDir == "" {
		return
	}
	_ = filepath.WalkDir(w.arguments.ConfigDir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = watcher.Add(path)
		}
		return nil
	})
}
