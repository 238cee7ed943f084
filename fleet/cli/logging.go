package cli

import (
	"io"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// newLogger returns a logger with the format of kubelet-supervisor, which the libraries also use. end flushes it;
// call it after the last line.
func newLogger(format string, to io.Writer) (logger logr.Logger, end func()) {
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime, config.EncodeLevel = zapcore.ISO8601TimeEncoder, zapcore.LowercaseLevelEncoder
	config.EncodeDuration = zapcore.StringDurationEncoder
	encoder := zapcore.NewConsoleEncoder(config)
	if format == "json" {
		encoder = zapcore.NewJSONEncoder(config)
	}
	core := zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(to)), zapcore.InfoLevel))
	logger = zapr.NewLogger(core)
	ctrllog.SetLogger(logger)
	klog.SetLogger(logger)
	return logger, func() { _ = core.Sync() }
}
