# Agents on every machine of a Nomad cluster that lets them in; the run is started from anywhere:
#
#   nomad var put nomad/jobs/weir token="t$(openssl rand -hex 16)"     # the token of the NATS server
#   nomad job run -var nats=nats://bench:4222 -var only=10.0.0.0/8 deploy/nomad/weir.nomad.hcl
#   weir run load.yaml --agents 10 --nats nats://bench:4222
#   nomad job stop weir
variable "nats" {
  type = string
}

variable "only" {
  type = string
}

variable "agents" {
  type    = number
  default = 10
}

job "weir" {
  type = "service"

  group "agents" {
    count = var.agents

    # One a machine: two would share a network card and its ports.
    constraint {
      operator = "distinct_hosts"
      value    = "true"
    }

    # One that is started again is a new agent, and gets nothing of a run.
    restart {
      attempts = 0
      mode     = "fail"
    }
    reschedule {
      attempts  = 0
      unlimited = false
    }

    task "agent" {
      driver      = "exec"
      kill_signal = "SIGINT"

      config {
        command = "/usr/bin/weir"
        args    = ["agent", "--join", var.nats, "--name", "agent-${NOMAD_ALLOC_INDEX}", "--only", var.only, "-o", "${NOMAD_ALLOC_DIR}/weir"]
      }

      template {
        destination = "${NOMAD_SECRETS_DIR}/nats.env"
        env         = true
        data        = <<-EOT
          WEIR_NATS_TOKEN={{ with nomadVar "nomad/jobs/weir" }}{{ .token }}{{ end }}
        EOT
      }

      resources {
        cores  = 2
        memory = 2048
      }
    }
  }
}
