package status

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestEvents(t *testing.T) {
	t.Run("shape", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			p := publish(t, api)
			p.Event(Event{time.Now(), corev1.EventTypeWarning, "KubeletConfigRefused", "bad\nword"})
			p.Event(Event{time.Now(), corev1.EventTypeNormal, "KubeletConfigChanged", "Kubelet restarting to use local config"})
			p.expect(t, "get post post")
			first, second := api.events[0], api.events[1]
			if first.Name != fmt.Sprintf("n1.%x", time.Now().UnixNano()) || second.Name == first.Name || first.Namespace != "default" {
				t.Errorf("names %s/%s and %s", first.Namespace, first.Name, second.Name)
			}
			if first.Type != "Warning" || first.Reason != "KubeletConfigRefused" || first.Message != "bad word" || first.Count != 1 {
				t.Errorf("%+v", first)
			}
			if diff := cmp.Diff(corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "node-uid"}, first.InvolvedObject); diff != "" {
				t.Error(diff)
			}
			if first.Source.Component != "kubelet-supervisor" || first.Source.Host != "n1" || !first.FirstTimestamp.Equal(&first.LastTimestamp) {
				t.Errorf("%+v", first)
			}
		})
	})
	t.Run("the newest wait for the API server", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.fail["post"] = errors.New("refused")
			p := publish(t, api)
			for i := range MaxEvents + 5 {
				p.Event(Event{time.Now(), corev1.EventTypeNormal, "Reason", fmt.Sprint(i)})
			}
			elapse(time.Minute)
			api.change(func() { clear(api.fail) })
			elapse(150 * time.Second)
			if len(api.events) != MaxEvents || api.events[0].Message != "5" || api.events[MaxEvents-1].Message != "36" {
				t.Errorf("%d events", len(api.events))
			}
		})
	})
	for answer, again := range map[code]bool{307: true, 400: false, 401: true, 403: false, 409: false, 422: false, 429: true, 500: true} {
		t.Run(answer.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFakeAPI()
				api.fail["post"] = answer
				logger, lines := logs()
				p := publish(t, api, logger)
				p.Event(Event{time.Now(), corev1.EventTypeNormal, "Reason", "message"})
				p.expect(t, "get post")
				elapse(30 * time.Second)
				if asked := api.asked() != ""; asked != again {
					t.Errorf("posted again: %v", asked)
				}
				if said := lines.Len() > 0; said != (answer != 409) { // which says that it was posted before
					t.Errorf("log lines: %v", lines.All())
				}
			})
		})
	}
	t.Run("one that newer ones have pushed out while it was posted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			p := publish(t, api)
			api.after = func(verb string) {
				if verb == "post" {
					api.after = nil
					for i := range MaxEvents {
						p.Event(Event{time.Now(), corev1.EventTypeNormal, "Newer", fmt.Sprint(i)})
					}
				}
			}
			p.Event(Event{time.Now(), corev1.EventTypeNormal, "Oldest", "message"})
			synctest.Wait()
			if len(api.events) != 1+MaxEvents || api.events[1].Message != "0" {
				t.Errorf("%d events", len(api.events))
			}
		})
	})
	t.Run("there is no Node yet", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			node := api.node
			api.node = nil
			p := publish(t, api)
			p.Event(Event{time.Now(), corev1.EventTypeNormal, "Reason", "message"})
			p.expect(t, "get")
			api.change(func() { api.node = node })
			elapse(2 * time.Second)
			p.expect(t, "get post")
		})
	})
	t.Run("those that were not posted are told at the end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			p := publish(t, api)
			p.Event(Event{time.Now(), corev1.EventTypeNormal, "Posted", "message"})
			p.expect(t, "get post")
			api.change(func() { api.fail["post"] = errors.New("refused") })
			want := []Event{{time.Now(), corev1.EventTypeWarning, "One", "first"}, {time.Now(), corev1.EventTypeNormal, "Two", "second"}}
			for _, e := range want {
				p.Event(e)
			}
			p.stop()
			for range 2 { // as often as one asks
				if diff := cmp.Diff(want, p.Unsent()); diff != "" {
					t.Error(diff)
				}
			}
		})
	})
	t.Run("the status goes first", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			p := publish(t, api)
			p.Event(Event{time.Now(), corev1.EventTypeNormal, "Reason", "message"})
			p.Offer(report("True", "Local", ""))
			p.expect(t, "get patch post")
		})
	})
}
