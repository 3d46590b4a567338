"""Reading what people upload: from packed bytes of any known layout to samples and a report."""
