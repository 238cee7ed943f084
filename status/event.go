package status

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// MaxEvents bounds the events kept while the API server is away; the oldest are dropped.
	MaxEvents = 32
	// eventNamespace must be that of the involved object, and for objects without one it is default.
	eventNamespace = metav1.NamespaceDefault
	eventSource    = "kubelet-supervisor"
)

// Event is one about the Node.
type Event struct {
	Time            time.Time
	Type            string // corev1.EventTypeNormal or corev1.EventTypeWarning
	Reason, Message string
}

// Event posts an event. Name, involved object and shape are upstream's (restartForNewConfig, Kubernetes 1.11 to 1.23), but the uid is the
// Node's own and not its name.
func (p *Publisher) Event(e Event) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.lastEvent = max(e.Time.UnixNano(), p.lastEvent+1) // names are unique even where the clock is not
	p.events = append(p.events, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: eventNamespace, Name: fmt.Sprintf("%s.%x", p.options.NodeName, p.lastEvent)},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: p.options.NodeName},
		Type:           e.Type,
		Reason:         e.Reason,
		Message:        Message(e.Message),
		Source:         corev1.EventSource{Component: eventSource, Host: p.options.NodeName},
		FirstTimestamp: metav1.Time{Time: e.Time},
		LastTimestamp:  metav1.Time{Time: e.Time},
		Count:          1,
	})
	p.events = p.events[max(0, len(p.events)-MaxEvents):]
	p.poke()
}

// Unsent gives the events that have not been posted, oldest first. It is for after Run.
func (p *Publisher) Unsent() []Event {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var unsent []Event
	for _, e := range p.events {
		unsent = append(unsent, Event{e.FirstTimestamp.Time, e.Type, e.Reason, e.Message})
	}
	return unsent
}

// sendEvents posts what is queued, oldest first. An event that the API server refuses is dropped; where it gives no answer,
// or cannot answer now, the rest waits.
func (p *Publisher) sendEvents(ctx context.Context) error {
	for event := p.oldest(); event != nil; event = p.oldest() {
		if err := p.meet(ctx); err != nil {
			return err
		}
		event.InvolvedObject.UID = p.node.uid
		err := p.options.Client.Post().Namespace(eventNamespace).Resource("events").Body(event).
			Timeout(requestTimeout).MaxRetries(0).Do(ctx).Error()
		switch {
		case err == nil || apierrors.IsAlreadyExists(err): // posted before, but the answer was lost
		case refused(err):
			p.logger.Warn("an event was refused by the API server",
				zap.String("reason", event.Reason), zap.String("message", event.Message), zap.Error(err))
		default:
			return fmt.Errorf("posting event %s: %w", event.Reason, err)
		}
		p.drop(event)
	}
	return nil
}

func (p *Publisher) oldest() *corev1.Event {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if len(p.events) == 0 {
		return nil
	}
	return p.events[0]
}

// drop removes an event from the queue, unless newer ones have replaced it.
func (p *Publisher) drop(event *corev1.Event) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.events[0] == event {
		p.events = p.events[1:]
	}
}

// refused reports whether the API server's answer will be the same next time.
func refused(err error) bool {
	var answer *apierrors.StatusError
	return errors.As(err, &answer) && answer.ErrStatus.Code >= 400 && answer.ErrStatus.Code < 500 &&
		!apierrors.IsTooManyRequests(err) && !apierrors.IsUnauthorized(err)
}
